#include "gallop/base/energy.h"

#include <fstream>
#include <string>
#include <system_error>

namespace gallop {

namespace {

constexpr double kMicro = 1e-6;

std::optional<double> read_joules(const fs::path& file) {
  double micro_joules = 0;
  std::ifstream stream(file);
  if (!(stream >> micro_joules)) return std::nullopt;
  return micro_joules * kMicro;
}

// "intel-rapl:0"; names with a second number are subdomains.
bool is_package(const std::string& name) {
  const size_t colon = name.find(':');
  return name.starts_with("intel-rapl") && colon != std::string::npos &&
         name.find(':', colon + 1) == std::string::npos;
}

}  // namespace

EnergyCounter::EnergyCounter(const fs::path& root) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    if (!is_package(entry.path().filename().string())) continue;
    const fs::path file = entry.path() / "energy_uj";
    const auto now = read_joules(file);
    const auto full = read_joules(entry.path() / "max_energy_range_uj");
    if (now && full) packages_.push_back({.file = file, .full = *full, .last = *now});
  }
}

double EnergyCounter::joules() {
  double sum = 0;
  for (Package& package : packages_) {
    const double now = read_joules(package.file).value_or(package.last);
    sum += now - package.last + (now < package.last ? package.full : 0);
    package.last = now;
  }
  return sum;
}

}  // namespace gallop
