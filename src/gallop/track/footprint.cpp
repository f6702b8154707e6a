#include "gallop/track/footprint.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::track {

namespace {

constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kSecondsPerHour = 3600;

struct Country {
  std::string_view two, three;
  double grams;
  int year;
};

// https://ourworldindata.org/grapher/carbon-intensity-electricity
constexpr Country kCountries[] = {
    {"AE", "ARE", 561, 2022},  {"AF", "AFG", 133, 2022},  {"AG", "ATG", 611, 2022},
    {"AL", "ALB", 24, 2022},   {"AM", "ARM", 265, 2022},  {"AO", "AGO", 175, 2022},
    {"AR", "ARG", 354, 2023},  {"AS", "ASM", 611, 2022},  {"AT", "AUT", 111, 2023},
    {"AU", "AUS", 549, 2023},  {"AW", "ABW", 561, 2022},  {"AZ", "AZE", 671, 2022},
    {"BA", "BIH", 600, 2023},  {"BB", "BRB", 606, 2022},  {"BD", "BGD", 691, 2023},
    {"BE", "BEL", 138, 2023},  {"BF", "BFA", 468, 2022},  {"BG", "BGR", 335, 2023},
    {"BH", "BHR", 905, 2022},  {"BI", "BDI", 250, 2022},  {"BJ", "BEN", 584, 2022},
    {"BM", "BMU", 651, 2022},  {"BN", "BRN", 894, 2022},  {"BO", "BOL", 532, 2023},
    {"BR", "BRA", 98, 2023},   {"BS", "BHS", 660, 2022},  {"BT", "BTN", 23, 2022},
    {"BW", "BWA", 848, 2022},  {"BY", "BLR", 442, 2022},  {"BZ", "BLZ", 226, 2022},
    {"CA", "CAN", 170, 2023},  {"CD", "COD", 24, 2022},   {"CF", "CAF", 0, 2022},
    {"CG", "COG", 700, 2022},  {"CH", "CHE", 35, 2023},   {"CI", "CIV", 394, 2022},
    {"CK", "COK", 250, 2022},  {"CL", "CHL", 291, 2023},  {"CM", "CMR", 305, 2022},
    {"CN", "CHN", 582, 2023},  {"CO", "COL", 260, 2023},  {"CR", "CRI", 53, 2023},
    {"CU", "CUB", 638, 2022},  {"CV", "CPV", 558, 2022},  {"CY", "CYP", 534, 2023},
    {"CZ", "CZE", 450, 2023},  {"DE", "DEU", 381, 2023},  {"DJ", "DJI", 692, 2022},
    {"DK", "DNK", 152, 2023},  {"DM", "DMA", 529, 2022},  {"DO", "DOM", 581, 2022},
    {"DZ", "DZA", 635, 2022},  {"EC", "ECU", 150, 2023},  {"EE", "EST", 417, 2023},
    {"EG", "EGY", 570, 2023},  {"EH", "ESH", 667, 2009},  {"ER", "ERI", 632, 2022},
    {"ES", "ESP", 174, 2023},  {"ET", "ETH", 25, 2022},   {"FI", "FIN", 79, 2023},
    {"FJ", "FJI", 288, 2022},  {"FK", "FLK", 500, 2022},  {"FO", "FRO", 405, 2022},
    {"FR", "FRA", 56, 2023},   {"GA", "GAB", 492, 2022},  {"GB", "GBR", 238, 2023},
    {"GD", "GRD", 640, 2022},  {"GE", "GEO", 168, 2023},  {"GF", "GUF", 218, 2021},
    {"GH", "GHA", 484, 2022},  {"GI", "GIB", 600, 2022},  {"GL", "GRL", 179, 2022},
    {"GM", "GMB", 667, 2022},  {"GN", "GIN", 237, 2022},  {"GP", "GLP", 500, 2021},
    {"GQ", "GNQ", 592, 2022},  {"GR", "GRC", 337, 2023},  {"GT", "GTM", 328, 2022},
    {"GU", "GUM", 623, 2022},  {"GW", "GNB", 625, 2022},  {"GY", "GUY", 640, 2022},
    {"HK", "HKG", 699, 2022},  {"HN", "HND", 282, 2022},  {"HR", "HRV", 205, 2023},
    {"HT", "HTI", 567, 2022},  {"HU", "HUN", 204, 2023},  {"ID", "IDN", 676, 2022},
    {"IE", "IRL", 291, 2023},  {"IL", "ISR", 583, 2022},  {"IN", "IND", 713, 2023},
    {"IQ", "IRQ", 689, 2022},  {"IR", "IRN", 655, 2023},  {"IS", "ISL", 28, 2022},
    {"IT", "ITA", 331, 2023},  {"JM", "JAM", 556, 2022},  {"JO", "JOR", 541, 2022},
    {"JP", "JPN", 485, 2023},  {"KE", "KEN", 70, 2023},   {"KG", "KGZ", 147, 2022},
    {"KH", "KHM", 418, 2022},  {"KI", "KIR", 667, 2022},  {"KM", "COM", 643, 2022},
    {"KN", "KNA", 636, 2022},  {"KP", "PRK", 390, 2022},  {"KR", "KOR", 431, 2023},
    {"KW", "KWT", 649, 2023},  {"KY", "CYM", 643, 2022},  {"KZ", "KAZ", 821, 2023},
    {"LA", "LAO", 266, 2022},  {"LB", "LBN", 599, 2022},  {"LC", "LCA", 667, 2022},
    {"LK", "LKA", 510, 2022},  {"LR", "LBR", 228, 2022},  {"LS", "LSO", 20, 2022},
    {"LT", "LTU", 160, 2023},  {"LU", "LUX", 105, 2023},  {"LV", "LVA", 123, 2023},
    {"LY", "LBY", 819, 2022},  {"MA", "MAR", 630, 2023},  {"MD", "MDA", 643, 2023},
    {"ME", "MNE", 417, 2023},  {"MG", "MDG", 436, 2022},  {"MK", "MKD", 565, 2023},
    {"ML", "MLI", 408, 2022},  {"MM", "MMR", 399, 2023},  {"MN", "MNG", 775, 2023},
    {"MO", "MAC", 449, 2022},  {"MQ", "MTQ", 523, 2021},  {"MR", "MRT", 465, 2022},
    {"MS", "MSR", 1000, 2022}, {"MT", "MLT", 459, 2023},  {"MU", "MUS", 632, 2022},
    {"MV", "MDV", 612, 2022},  {"MW", "MWI", 67, 2022},   {"MX", "MEX", 507, 2023},
    {"MY", "MYS", 606, 2022},  {"MZ", "MOZ", 136, 2022},  {"NA", "NAM", 59, 2022},
    {"NC", "NCL", 661, 2022},  {"NE", "NER", 671, 2022},  {"NG", "NGA", 523, 2023},
    {"NI", "NIC", 265, 2022},  {"NL", "NLD", 268, 2023},  {"NO", "NOR", 30, 2023},
    {"NP", "NPL", 24, 2022},   {"NR", "NRU", 750, 2022},  {"NZ", "NZL", 113, 2023},
    {"OM", "OMN", 565, 2023},  {"PA", "PAN", 162, 2022},  {"PE", "PER", 266, 2023},
    {"PF", "PYF", 443, 2022},  {"PG", "PNG", 507, 2022},  {"PH", "PHL", 611, 2023},
    {"PK", "PAK", 441, 2023},  {"PL", "POL", 662, 2023},  {"PM", "SPM", 600, 2022},
    {"PR", "PRI", 679, 2022},  {"PS", "PSE", 516, 2022},  {"PT", "PRT", 166, 2023},
    {"PY", "PRY", 24, 2023},   {"QA", "QAT", 602, 2023},  {"RE", "REU", 573, 2021},
    {"RO", "ROU", 241, 2023},  {"RS", "SRB", 636, 2023},  {"RU", "RUS", 441, 2023},
    {"RW", "RWA", 316, 2022},  {"SA", "SAU", 707, 2022},  {"SB", "SLB", 700, 2022},
    {"SC", "SYC", 565, 2022},  {"SD", "SDN", 263, 2022},  {"SE", "SWE", 41, 2023},
    {"SG", "SGP", 471, 2023},  {"SH", "SHN", 1000, 2022}, {"SI", "SVN", 231, 2023},
    {"SK", "SVK", 117, 2023},  {"SL", "SLE", 50, 2022},   {"SN", "SEN", 512, 2022},
    {"SO", "SOM", 579, 2022},  {"SR", "SUR", 349, 2022},  {"SS", "SSD", 629, 2022},
    {"ST", "STP", 643, 2022},  {"SV", "SLV", 271, 2023},  {"SY", "SYR", 702, 2022},
    {"SZ", "SWZ", 172, 2022},  {"TC", "TCA", 654, 2022},  {"TD", "TCD", 629, 2022},
    {"TG", "TGO", 443, 2022},  {"TH", "THA", 550, 2023},  {"TJ", "TJK", 117, 2022},
    {"TL", "TLS", 667, 2022},  {"TM", "TKM", 1306, 2022}, {"TN", "TUN", 564, 2023},
    {"TO", "TON", 625, 2022},  {"TR", "TUR", 465, 2023},  {"TT", "TTO", 682, 2022},
    {"TW", "TWN", 642, 2023},  {"TZ", "TZA", 339, 2022},  {"UA", "UKR", 260, 2022},
    {"UG", "UGA", 45, 2022},   {"US", "USA", 369, 2023},  {"UY", "URY", 129, 2023},
    {"UZ", "UZB", 1168, 2022}, {"VC", "VCT", 529, 2022},  {"VE", "VEN", 186, 2022},
    {"VG", "VGB", 647, 2022},  {"VI", "VIR", 632, 2022},  {"VN", "VNM", 475, 2023},
    {"VU", "VUT", 571, 2022},  {"WS", "WSM", 474, 2022},  {"YE", "YEM", 566, 2022},
    {"ZA", "ZAF", 708, 2023},  {"ZM", "ZMB", 112, 2022},  {"ZW", "ZWE", 298, 2022},
};

}  // namespace

void EnergySum::add(const Record& record) {
  const auto [session, is_new] = sessions_.try_emplace(record.session, record.time, record.time);
  session->second.begin = std::min(session->second.begin, record.time);
  session->second.end = std::max(session->second.end, record.time);
  if (record.kind != "system") return;
  if (const auto joules = record.values.find("joules"); joules != record.values.end()) {
    energy_.joules += joules->second;
  }
  if (const auto method = record.texts.find("energy"); method != record.texts.end()) {
    energy_.method = method->second;
  }
}

Energy EnergySum::energy() const {
  Energy energy = energy_;
  for (const auto& [number, session] : sessions_) energy.seconds += session.end - session.begin;
  return energy;
}

Energy energy_of(const Log& log) {
  EnergySum sum;
  for (const Record& record : log.records) sum.add(record);
  return sum.energy();
}

CarbonIntensity carbon_intensity(const std::string& country) {
  std::string code = country;
  std::transform(code.begin(), code.end(), code.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  for (const Country& one : kCountries) {
    if (one.two == code || one.three == code) return {.grams = one.grams, .year = one.year};
  }
  throw UsageError(fmt::format(
      "no carbon intensity is known for country '{}'; use an ISO 3166-1 code such as DE "
      "or DEU, or grams of CO2 per kilowatt-hour",
      printable(country)));
}

Footprint footprint_of(const Energy& energy, const Surroundings& surroundings) {
  Footprint footprint;
  footprint.kwh = energy.joules / kJoulesPerKwh * surroundings.pue;
  footprint.grams = footprint.kwh * surroundings.grams_per_kwh.value_or(0);
  footprint.price = energy.seconds / kSecondsPerHour * surroundings.price_per_hour;
  return footprint;
}

}  // namespace gallop::track
