//! Analyses and what users want to hear of -> notices, each sent at least once, those of a page in order (docs/notices.md).
//!
//! | file | what becomes what |
//! |---|---|
//! | `notice` | a change in the state for which a rule holds -> a [`Notice`] of it |
//! | `shape` | a notice -> what webhooks, Slack, ntfy, Apprise and mail take |
//! | `notice_maker` | analyses that are new -> notices in the outbox |
//! | `smtp` | an e-mail -> a mail server |
//! | `deliver` | a notice and a rule -> whoever it is for |
//! | `sending` | what waits in the outbox -> sent; threads of their own beside a crawl |
//!
//! The outbox follows the analyses as the text index does: it knows for each page the last observation that it has taken in. A crawl only tells
//! which pages have new analyses, and waits for nobody.

mod deliver;
mod notice;
mod notice_maker;
mod sending;
mod shape;
mod smtp;

pub use deliver::{DeliveryFailure, Notifier};
pub use notice::{Notice, NoticeLine, NoticeWriter};
pub use notice_maker::{NoticeMaker, open_outbox};
pub use sending::{SendReport, send_all, start_notifying};
