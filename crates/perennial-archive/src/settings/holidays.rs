//! `holidays` of `[[site]]` -> local days. They are single days, or the national holidays of countries, computed
//! without a network.

use std::fmt;
use std::str::FromStr;

use holidays_rs::{Calendar, Country};
use perennial_core::time::LocalDay;

/// Years with computed national holidays: from the first web archives to the future of a crawl today.
const YEARS: std::ops::RangeInclusive<i32> = 1995..=2060;

/// One entry of `holidays`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holiday {
    /// One day.
    Day(LocalDay),
    /// The national holidays of a country, by its country code.
    Of(&'static str),
}

impl Holiday {
    pub fn days(self) -> Vec<LocalDay> {
        let country = match self {
            Holiday::Day(day) => return vec![day],
            Holiday::Of(code) => COUNTRIES.iter().find(|(known, _)| *known == code),
        };
        let Some((_, country)) = country else { return Vec::new() };
        let calendar = Calendar::new(*country);
        let dates = YEARS.flat_map(|year| calendar.holidays_in(year));
        dates.filter_map(|(date, _)| i32::try_from(date.days_from_epoch()).ok().map(LocalDay)).collect()
    }
}

impl fmt::Display for Holiday {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holiday::Day(day) => write!(f, "{}", day.to_date()),
            Holiday::Of(code) => f.write_str(code),
        }
    }
}

impl FromStr for Holiday {
    type Err = String;

    fn from_str(text: &str) -> Result<Holiday, String> {
        let text = text.trim();
        let code = text.to_ascii_uppercase();
        if let Some((code, _)) = COUNTRIES.iter().find(|(known, _)| *known == code) {
            return Ok(Holiday::Of(code));
        }
        let (country, region) = code.split_once('-').unwrap_or((&code, ""));
        let is_code = country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_alphabetic());
        match COUNTRIES.iter().any(|(known, _)| *known == country) {
            true if !region.is_empty() => Err(format!(
                "holidays of regions are not known: write `{country}`, and the days that only {code} has beside it, as \
                 [\"{country}\", \"2026-11-01\"]"
            )),
            _ if is_code && region.is_empty() => {
                let known: Vec<&str> = COUNTRIES.iter().map(|(known, _)| *known).collect();
                Err(format!(
                    "the holidays of `{country}` are not known: write them as days, such as 2026-12-25, or one of {}",
                    known.join(", ")
                ))
            }
            _ => {
                let days = LocalDay::parse(text).map(Holiday::Day);
                days.map_err(|error| format!("{error}; or the code of a country, such as DE"))
            }
        }
    }
}

/// The crate's countries by their ISO 3166-1 codes, which the crate lacks.
static COUNTRIES: &[(&str, Country)] = &[
    ("AD", Country::Andorra),
    ("AS", Country::AmericanSamoa),
    ("AT", Country::Austria),
    ("AU", Country::Australia),
    ("AW", Country::Aruba),
    ("AX", Country::AlandIslands),
    ("BE", Country::Belgium),
    ("BL", Country::SaintBarthelemy),
    ("BQ", Country::CaribbeanNetherlands),
    ("BR", Country::Brazil),
    ("BW", Country::Botswana),
    ("CA", Country::Canada),
    ("CD", Country::DrCongo),
    ("CG", Country::Congo),
    ("CH", Country::Switzerland),
    ("CV", Country::CaboVerde),
    ("CW", Country::Curacao),
    ("CY", Country::Cyprus),
    ("CZ", Country::Czechia),
    ("DE", Country::Germany),
    ("DK", Country::Denmark),
    ("EE", Country::Estonia),
    ("ES", Country::Spain),
    ("FI", Country::Finland),
    ("FK", Country::FalklandIslands),
    ("FM", Country::Micronesia),
    ("FO", Country::FaroeIslands),
    ("FR", Country::France),
    ("GB", Country::UnitedKingdom),
    ("GF", Country::FrenchGuiana),
    ("GL", Country::Greenland),
    ("GP", Country::Guadeloupe),
    ("GQ", Country::EquatorialGuinea),
    ("GR", Country::Greece),
    ("GU", Country::Guam),
    ("HR", Country::Croatia),
    ("HT", Country::Haiti),
    ("ID", Country::Indonesia),
    ("IE", Country::Ireland),
    ("IS", Country::Iceland),
    ("IT", Country::Italy),
    ("JM", Country::Jamaica),
    ("LC", Country::SaintLucia),
    ("LI", Country::Liechtenstein),
    ("LR", Country::Liberia),
    ("LS", Country::Lesotho),
    ("LT", Country::Lithuania),
    ("LU", Country::Luxembourg),
    ("LV", Country::Latvia),
    ("MC", Country::Monaco),
    ("MF", Country::SaintMartin),
    ("MP", Country::NorthernMarianaIslands),
    ("MQ", Country::Martinique),
    ("MT", Country::Malta),
    ("MW", Country::Malawi),
    ("MX", Country::Mexico),
    ("MZ", Country::Mozambique),
    ("NA", Country::Namibia),
    ("NC", Country::NewCaledonia),
    ("NF", Country::NorfolkIsland),
    ("NI", Country::Nicaragua),
    ("NL", Country::Netherlands),
    ("NO", Country::Norway),
    ("NR", Country::Nauru),
    ("NU", Country::Niue),
    ("NZ", Country::NewZealand),
    ("PA", Country::Panama),
    ("PE", Country::Peru),
    ("PF", Country::FrenchPolynesia),
    ("PL", Country::Poland),
    ("PM", Country::SaintPierreAndMiquelon),
    ("PN", Country::PitcairnIslands),
    ("PT", Country::Portugal),
    ("PW", Country::Palau),
    ("RE", Country::Reunion),
    ("RO", Country::Romania),
    ("SE", Country::Sweden),
    ("SI", Country::Slovenia),
    ("SJ", Country::SvalbardAndJanMayen),
    ("SK", Country::Slovakia),
    ("ST", Country::SaoTomeAndPrincipe),
    ("SV", Country::ElSalvador),
    ("SX", Country::SintMaarten),
    ("TF", Country::FrenchSouthernTerritories),
    ("TK", Country::Tokelau),
    ("UM", Country::UnitedStatesMinorOutlyingIslands),
    ("US", Country::UnitedStates),
    ("UY", Country::Uruguay),
    ("VI", Country::UnitedStatesVirginIslands),
    ("WF", Country::WallisAndFutuna),
    ("WS", Country::Samoa),
    ("YT", Country::Mayotte),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn days(text: &str) -> Vec<LocalDay> {
        text.parse::<Holiday>().unwrap().days()
    }

    #[test]
    fn every_country_of_the_crate_has_one_code() {
        for country in Country::ALL {
            let codes = COUNTRIES.iter().filter(|(_, known)| known == country).count();
            assert_eq!(codes, 1, "{}", country.name());
        }
        assert!(COUNTRIES.is_sorted_by_key(|(code, _)| *code));
    }

    #[test]
    fn countries_have_the_days_on_which_their_offices_are_closed() {
        let has = |country: &str, day: &str| days(country).contains(&LocalDay::parse(day).unwrap());
        // Fixed days, days relative to Easter (5 April 2026), to weekdays, and to the Orthodox Easter (12 April 2026).
        assert!(has("DE", "2026-10-03") && has("de", "2026-04-06") && !has("DE", "2026-10-02"));
        assert!(has("US", "2026-11-26") && has("US", "2026-07-03") && has("GR", "2026-04-13"));
        assert!(has("FR", "2026-07-14") && !has("FR", "2026-04-03"));
        assert_eq!(days("2026-12-25"), [LocalDay::parse("2026-12-25").unwrap()]);
    }

    #[test]
    fn what_is_not_known_is_refused_with_a_hint() {
        let refused = |text: &str| text.parse::<Holiday>().unwrap_err();
        assert!(refused("DE-BY").contains("[\"DE\", \"2026-11-01\"]"));
        assert!(refused("JP").contains("write them as days"));
        assert!(refused("christmas").contains("such as DE"));
        for text in ["DE", "2026-12-25"] {
            assert_eq!(text.parse::<Holiday>().unwrap().to_string(), text);
        }
    }
}
