//! Layout workers that are left alone or turned against us: they end with their parent, and can do nothing but compute.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use perennial_render::resource::nothing;
use perennial_render::{Fallback, Limits, Pool, WorkerCommand};

/// A page that keeps the layout engine busy for much longer than a test takes.
fn endless_page() -> String {
    todo!()
}
