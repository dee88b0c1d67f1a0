//! Pages written for one question each -> what is found in them.
