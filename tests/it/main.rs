//! Whole-program tests: real processes, real files, nothing left behind.

mod leaf;
