//! Time series and visits -> what is expected of a page in each period (P-PATTERN 3.2, 6.3).

pub mod mixture;
