//! A leaf's whole process tree: what it consists of, and ending all of it.
//!
//! - `process`: which process is which (`/proc`, pidfd)
//! - `below`: what a living launch consists of
//! - `usage`: what that uses, and whether that is work
//! - `cgroup`: a control group of the leaf's own, where there can be one
//! - `sweep`: ending whole trees
//! - `reach`: which of these means this machine has

pub(in crate::leaf) mod below;
pub(in crate::leaf) mod cgroup;
pub(in crate::leaf) mod process;
pub(in crate::leaf) mod reach;
pub(in crate::leaf) mod sweep;
pub(in crate::leaf) mod usage;
