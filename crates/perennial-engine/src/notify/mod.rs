//! Makes notices of changes by the user's rules. Each is sent at least once, those of a page in order
//! (docs/notices.md).
//!
//! | module | purpose |
//! |---|---|
//! | `notice` | makes the [`Notice`] of a change that matches a rule |
//! | `shape` | formats a notice for webhooks, Slack, ntfy, Apprise and mail |
//! | `sight` | notices watches that do not see their page |
//! | `notice_maker` | matches new analyses against the rules and stores notices in the outbox |
//! | `smtp` | sends e-mail |
//! | `silence` | finds rules that cannot fire |
//! | `deliver` | delivers a notice to its receiver |
//! | `sending` | sends the pending notices of the outbox, also on threads during a crawl |
//!
//! The outbox follows the analyses as the text index does: for each page it records the last processed observation. A
//! crawl only reports which pages have new analyses. It never waits for a receiver.

mod deliver;
mod notice;
mod notice_maker;
mod sending;
mod shape;
mod sight;
mod silence;
mod smtp;

pub use deliver::{DeliveryFailure, Notifier};
pub use notice::{Notice, NoticeLine, NoticeWriter};
pub use notice_maker::{NoticeMaker, open_outbox};
pub use sending::{Delivery, DeliveryReport, SendReport, WatchNews, send_all, start_notifying};
pub use silence::{SilentRule, silent_rules};
