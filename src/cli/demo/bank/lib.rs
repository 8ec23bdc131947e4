//! Accounts of a small bank. Amounts are in whole cents.

use std::fmt;

/// A day, counted from the one on which the bank opened. It begins at midnight.
pub type Day = u32;

/// Why a transfer was refused; no money has moved then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The account does not hold that much.
    NotCovered,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NotCovered => write!(f, "the account does not hold that much"),
        }
    }
}

impl std::error::Error for Refused {}

/// Money that left an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub day: Day,
    pub cents: u64,
}

/// An account, what it holds, and what may leave it in a day.
#[derive(Debug)]
pub struct Account {
    balance: u64,
    daily_limit: u64,
    sent: Vec<Sent>,
}

impl Account {
    pub fn new(balance: u64, daily_limit: u64) -> Account {
        Account {
            balance,
            daily_limit,
            sent: Vec::new(),
        }
    }

    pub fn balance(&self) -> u64 {
        self.balance
    }

    pub fn daily_limit(&self) -> u64 {
        self.daily_limit
    }

    /// Everything that was sent from this account, oldest first.
    pub fn statement(&self) -> &[Sent] {
        &self.sent
    }

    /// Sends money to another account.
    pub fn transfer(&mut self, cents: u64, to: &mut Account, today: Day) -> Result<(), Refused> {
        if cents > self.balance {
            return Err(Refused::NotCovered);
        }
        self.balance -= cents;
        to.balance += cents;
        self.sent.push(Sent { day: today, cents });
        Ok(())
    }
}
