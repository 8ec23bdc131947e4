use bank::{Account, Refused};

#[test]
fn a_transfer_moves_money_and_stands_in_the_statement() {
    let (mut ann, mut bob) = (Account::new(1_000, 500), Account::new(0, 500));
    ann.transfer(300, &mut bob, 1).unwrap();
    assert_eq!((ann.balance(), bob.balance()), (700, 300));
    assert_eq!(ann.statement()[0].cents, 300);
}

#[test]
fn a_transfer_that_the_account_does_not_cover_is_refused() {
    let (mut ann, mut bob) = (Account::new(100, 500), Account::new(0, 500));
    assert_eq!(ann.transfer(101, &mut bob, 1), Err(Refused::NotCovered));
    assert_eq!((ann.balance(), bob.balance()), (100, 0));
}
