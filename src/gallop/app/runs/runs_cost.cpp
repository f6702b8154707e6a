#include <initializer_list>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/json_line.h"
#include "gallop/app/runs/cost_options.h"
#include "gallop/app/runs/subcommands.h"
#include "gallop/app/runs/which_runs.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/footprint.h"
#include "gallop/track/run_locations.h"

namespace gallop::app {

namespace {

using track::Energy;
using track::Footprint;
using track::Surroundings;

std::string or_dash(bool is_known, const std::string& text) { return is_known ? text : "-"; }

// In the largest of units a factor of 1000 apart that gives at least 1.
std::string with_unit(double amount, std::initializer_list<const char*> units) {
  const char* const* unit = units.begin();
  for (; unit + 1 != units.end() && amount >= 1000; ++unit) amount /= 1000;
  return fmt::format("{:.3g} {}", amount, *unit);
}

void print_line(const std::string& run, const std::string& time, const std::string& energy,
                const std::string& carbon, const std::string& price, const std::string& how) {
  fmt::print("{:<28}{:>12}{:>14}{:>14}{:>10}  {}\n", run, time, energy, carbon, price, how);
}

void print_table(const std::vector<fs::path>& runs, const CostOptions& options,
                 const Surroundings& surroundings) {
  print_line("run", "time", "energy", "CO2", "price", "energy is");
  Energy sum;
  const auto print = [&](const std::string& name, const Energy& energy, const std::string& how) {
    const Footprint cost = track::footprint_of(energy, surroundings);
    const bool is_known = !how.empty();
    print_line(
        name, format_duration(energy.seconds),
        or_dash(is_known, with_unit(1000 * cost.kwh, {"Wh", "kWh", "MWh"})),
        or_dash(is_known && options.grams.has_value(), with_unit(cost.grams, {"g", "kg", "t"})),
        or_dash(options.price > 0, fmt::format("{:.2f}", cost.price)), is_known ? how : "unknown");
  };
  for (const fs::path& run : runs) {
    const Energy energy = track::energy_of(log_of(run));
    print(printable(track::run_name_of(run)), energy, energy.method);
    sum.joules += energy.joules;
    sum.seconds += energy.seconds;
    if (!energy.method.empty()) sum.method = "known runs only";
  }
  if (runs.size() > 1) print("all", sum, sum.method);
  if (options.pue != 1) fmt::print("with a PUE of {:g}\n", options.pue);
  if (options.year > 0) {
    fmt::print("{:g} g of CO2 for a kWh in {}, the mean of {}\n", *options.grams, options.country,
               options.year);
  } else if (!options.grams) {
    fmt::print("use --country CODE for CO2, --price for the cost of the machine per hour\n");
  }
}

void print_json(const std::vector<fs::path>& runs, const Surroundings& surroundings) {
  for (const fs::path& run : runs) {
    const Energy energy = track::energy_of(log_of(run));
    const Footprint cost = track::footprint_of(energy, surroundings);
    nlohmann::ordered_json json{{"run", track::run_name_of(run)}, {"seconds", energy.seconds},
                                {"joules", energy.joules},        {"method", energy.method},
                                {"pue", surroundings.pue},        {"kwh", cost.kwh}};
    if (surroundings.grams_per_kwh) json["co2_grams"] = cost.grams;
    if (surroundings.price_per_hour > 0) json["price"] = cost.price;
    fmt::print("{}\n", json_line(json));
  }
}

}  // namespace

ExitCode runs_cost(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Report the cost of runs: time, energy, CO2 and money.\n\n"
      "Example: gallop runs cost fashion-mnist-1 --country DE --pue 1.2 --price 0.40",
      "gallop runs cost");
  WhichRuns which;
  which.add_to(parser, /*several=*/true);
  CostOptions options;
  bool json = false;
  options.add_to(parser);
  parser.add_flag("--json", json, "print JSON, one line per run");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const Surroundings surroundings = options.surroundings();
  const std::vector<fs::path> runs = which.find();
  if (json) {
    print_json(runs, surroundings);
  } else {
    print_table(runs, options, surroundings);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
