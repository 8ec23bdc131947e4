//! Smaller matrices: before and after each effect of stories in which other things happen.
