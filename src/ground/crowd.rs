//! Work that a few threads share, each piece of which may make more.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is to be done, and how many may still add to it.
#[derive(Debug)]
struct State<T> {
    waiting: Vec<T>,
    busy: usize,
}

/// Pieces of work for whoever is free.
#[derive(Debug)]
pub(super) struct Crowd<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Crowd<T> {
    /// Work that begins with one piece.
    pub(super) fn new(first: T) -> Crowd<T> {
        Crowd {
            state: Mutex::new(State {
                waiting: vec![first],
                busy: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Adds a piece.
    pub(super) fn add(&self, piece: T) {
        self.state().waiting.push(piece);
        self.changed.notify_one();
    }

    /// The next piece; waits while somebody who is at one may still add some. None when all is done.
    pub(super) fn next(&self) -> Option<Piece<'_, T>> {
        let mut state = self.state();
        loop {
            if let Some(piece) = state.waiting.pop() {
                state.busy += 1;
                return Some(Piece { piece, crowd: self });
            }
            if state.busy == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // Each change is whole: a worker that panicked left nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece that somebody is at, until it is dropped.
#[derive(Debug)]
pub(super) struct Piece<'a, T> {
    pub(super) piece: T,
    crowd: &'a Crowd<T>,
}

impl<T> Drop for Piece<'_, T> {
    fn drop(&mut self) {
        let mut state = self.crowd.state();
        state.busy -= 1;
        if state.busy == 0 {
            self.crowd.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_piece_is_done_once_and_all_go_home_even_when_one_gives_up() {
        let crowd = Crowd::new(12u32);
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let (crowd, done) = (&crowd, &done);
                scope.spawn(move || {
                    while let Some(at) = crowd.next() {
                        done.fetch_add(1, Ordering::Relaxed);
                        for _ in 0..2 {
                            if at.piece > 0 {
                                crowd.add(at.piece - 1);
                            }
                        }
                        if worker == 0 {
                            return;
                        }
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), (1 << 13) - 1);
    }
}
