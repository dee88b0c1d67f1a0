//! An HTTP response -> what it means for the page, its host and the next request.
//!
//! | module | what becomes what |
//! |---|---|
//! | [`limits`] | limits of one exchange, and its proxy |
//! | [`address`] | an IP address -> whether it may be fetched from |
//! | [`cookies`] | cookies of a login -> the field that a request sends |
//! | [`login`] | a recorded login -> steps to repeat |
//! | [`robots`] | robots.txt -> what may be fetched (RFC 9309) |
//! | [`politeness`] | a host's responses -> when the next request may be sent |
//! | [`validator`] | ETag and Last-Modified over time -> whether a 304 can be trusted |
//! | [`response`] | a response -> what it means for page, host and validators |
//! | [`soft_error`] | a delivered page -> whether it is an error page |

pub mod limits;

pub mod address;

pub mod cookies;

pub mod login;

pub mod robots;

pub mod politeness;

pub mod validator;

pub mod response;

pub mod soft_error;
