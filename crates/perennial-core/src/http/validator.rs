//! ETag and Last-Modified over time -> whether a 304 of this page can be trusted.
//!
//! Servers are wrong in two ways. Some respond with 304 although the page changed (a cache with a coarse key). Some
//! send a new validator for the same content (Last-Modified = now, an ETag per machine), which makes conditional
//! requests useless. Comparing validators with payload digests reveals both. So a page is sometimes fetched
//! unconditionally, more often the less is known about it.

/// The reliability of a page's validators. It is small and stored with the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ValidatorTrust {
    /// Unconditional fetches that confirmed the last 304.
    pub n_kept: u8,
    /// 304 responses since the last full response.
    pub n_not_modified: u8,
    /// Full responses with the same payload but a different validator.
    pub n_useless: u8,
    /// Whether a 304 was ever wrong. Then none is trusted again.
    pub is_unreliable: bool,
}

/// After this many useless validators in a row, no condition is sent.
const MAX_USELESS: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValidatorResponse {
    /// 304 to a conditional request.
    NotModified,
    /// A full response to an unconditional request.
    Full {
        /// Whether the payload equals that of the last full response.
        same_payload: bool,
        /// Whether the validators equal those of the last full response, and there is at least one.
        same_validator: bool,
    },
    /// A full response to a conditional request.
    FullDespiteCondition {
        /// Whether the payload equals that of the last full response.
        same_payload: bool,
    },
}

impl ValidatorTrust {
    /// Whether to send If-None-Match / If-Modified-Since at the next visit.
    pub fn sends_condition(self) -> bool {
        !self.is_unreliable && self.n_useless < MAX_USELESS && self.n_not_modified < self.patience()
    }

    /// How many 304s in a row are trusted before one is checked: 4 at first, more with every confirmation.
    fn patience(self) -> u8 {
        4u8.saturating_mul(1 << self.n_kept.min(3))
    }

    pub fn record(&mut self, response: ValidatorResponse) {
        match response {
            ValidatorResponse::NotModified => {
                self.n_not_modified = self.n_not_modified.saturating_add(1);
                self.n_useless = 0;
            }
            ValidatorResponse::Full { same_payload, same_validator } => {
                if self.n_not_modified > 0 || same_validator {
                    self.check_promise(same_payload, same_validator);
                }
                self.n_not_modified = 0;
            }
            ValidatorResponse::FullDespiteCondition { same_payload } => {
                self.n_not_modified = 0;
                self.n_useless = if same_payload { self.n_useless.saturating_add(1) } else { 0 };
            }
        }
    }

    /// Checks a payload that the same validator, or a run of 304s, promised to be the same.
    fn check_promise(&mut self, same_payload: bool, same_validator: bool) {
        if same_payload {
            self.n_kept = self.n_kept.saturating_add(1);
        } else if same_validator {
            self.is_unreliable = true;
        }
    }

    pub fn to_bytes(self) -> [u8; 4] {
        [self.n_kept, self.n_not_modified, self.n_useless, u8::from(self.is_unreliable)]
    }

    /// Parses [`ValidatorTrust::to_bytes`]; anything else gives the default.
    pub fn from_bytes(bytes: &[u8]) -> ValidatorTrust {
        match *bytes {
            [n_kept, n_not_modified, n_useless, is_unreliable] => {
                ValidatorTrust { n_kept, n_not_modified, n_useless, is_unreliable: is_unreliable != 0 }
            }
            _ => ValidatorTrust::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_wrong_validator_is_found_within_five_visits_and_never_trusted_again() {
        let mut trust = ValidatorTrust::default();
        let mut n_visits = 0;
        while !trust.is_unreliable {
            n_visits += 1;
            assert!(n_visits <= 5, "{trust:?}");
            let response = if trust.sends_condition() {
                ValidatorResponse::NotModified
            } else {
                ValidatorResponse::Full { same_payload: false, same_validator: true }
            };
            trust.record(response);
        }
        assert!(!trust.sends_condition());
    }

    #[test]
    fn an_honest_server_is_checked_ever_less() {
        let mut trust = ValidatorTrust::default();
        let mut n_full = 0;
        for _ in 0..200 {
            if trust.sends_condition() {
                trust.record(ValidatorResponse::NotModified);
            } else {
                n_full += 1;
                trust.record(ValidatorResponse::Full { same_payload: true, same_validator: true });
            }
        }
        assert!((4..=10).contains(&n_full), "{n_full}");
    }

    #[test]
    fn a_page_that_changed_between_checks_with_a_new_validator_is_no_lie() {
        let mut trust = ValidatorTrust { n_not_modified: 4, ..ValidatorTrust::default() };
        trust.record(ValidatorResponse::Full { same_payload: false, same_validator: false });
        assert!(!trust.is_unreliable && trust.sends_condition());
    }

    #[test]
    fn last_modified_now_is_given_up() {
        let mut trust = ValidatorTrust::default();
        for _ in 0..3 {
            assert!(trust.sends_condition());
            trust.record(ValidatorResponse::FullDespiteCondition { same_payload: true });
        }
        assert!(!trust.sends_condition());
    }

    proptest! {
        #[test]
        fn bytes_round_trip(bytes in any::<[u8; 3]>(), is_unreliable in any::<bool>()) {
            let trust = ValidatorTrust { n_kept: bytes[0], n_not_modified: bytes[1], n_useless: bytes[2], is_unreliable };
            prop_assert_eq!(ValidatorTrust::from_bytes(&trust.to_bytes()), trust);
        }
    }
}
