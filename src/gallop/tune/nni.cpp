#include "gallop/tune/nni.h"

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/node.h"
#include "gallop/config/scalar.h"
#include "gallop/tune/sweep.h"

namespace gallop::tune {

namespace {

using Json = nlohmann::ordered_json;

/// An NNI distribution: its '_type' and the format of its '_value'.
struct Kind {
  const char* name;
  const char* values;
  const char* scale;  ///< Scale of the interval, or distribution if it begins with "q_".
  size_t numbers;     ///< Number of values; the third one is a step.
};

constexpr std::array kKinds = {
    Kind{"randint", "[low, high]", "", 2},
    Kind{"uniform", "[low, high]", "", 2},
    Kind{"quniform", "[low, high, q]", "", 3},
    Kind{"loguniform", "[low, high]", "log", 2},
    Kind{"qloguniform", "[low, high, q]", "log", 3},
    Kind{"normal", "[mu, sigma]", "normal", 2},
    Kind{"qnormal", "[mu, sigma, q]", "q_normal", 3},
    Kind{"lognormal", "[mu, sigma]", "log-normal", 2},
    Kind{"qlognormal", "[mu, sigma, q]", "q_log_normal", 3},
};

constexpr double kNearMultiple = 1e-9;

bool is_multiple(double number, double step) {
  const double steps = number / step;
  return std::abs(steps - std::round(steps)) < kNearMultiple;
}

// In a sweep, a number without a decimal point is an integer.
std::string with_point(double number) {
  std::string text = config::number_text(number);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

/// Writes parameters as entries of a YAML map.
class Writer {
 public:
  /// "NAME: DEFINITION" for each parameter of a map, with prefixed names.
  std::vector<std::string> entries(const Json& space, const std::string& prefix) {
    std::vector<std::string> lines;
    for (const auto& [key, definition] : space.items()) {
      if (key == "_name") continue;
      const std::string name = prefix + key;
      const std::string text = parameter(name, definition);
      if (!text.empty()) lines.push_back(fmt::format("{}: {}", Json(name).dump(), text));
    }
    return lines;
  }

  void fail(const std::string& name, const std::string& what) {
    mistakes_ += fmt::format("{}{}: {}", mistakes_.empty() ? "" : "\n", printable(name), what);
  }

  void throw_if_any(const std::string& file_name) const {
    if (!mistakes_.empty()) throw UsageError(fmt::format("{}: {}", file_name, mistakes_));
  }

 private:
  std::string parameter(const std::string& name, const Json& definition) {
    const bool is_map = definition.is_object() && definition.contains("_type") &&
                        definition["_type"].is_string() && definition.contains("_value") &&
                        definition["_value"].is_array();
    if (!is_map) {
      fail(name, "expected {\"_type\": ..., \"_value\": [...]}");
      return {};
    }
    const std::string type = definition["_type"];
    if (type == "choice") return choice(name, definition["_value"]);
    for (const Kind& kind : kKinds) {
      if (type == kind.name) return interval(name, kind, definition["_value"]);
    }
    std::vector<std::string> known = {"choice"};
    for (const Kind& kind : kKinds) known.emplace_back(kind.name);
    fail(name, fmt::format("unsupported _type '{}'; supported are {}", printable(type),
                           join_names(known, "and")));
    return {};
  }

  std::string choice(const std::string& name, const Json& options) {
    bool has_names = false;
    for (const Json& option : options) {
      has_names = has_names || (option.is_object() && option.contains("_name"));
    }
    if (!has_names) {
      for (const Json& option : options) {
        if (option.is_object()) fail(name, "an option that is a map needs a '_name'");
      }
      return options.dump();
    }
    std::vector<std::string> cases;
    for (const Json& option : options) {
      const Json& label = option.is_object() && option.contains("_name") ? option["_name"] : option;
      if (label.is_structured()) {
        fail(name, fmt::format("{}: options beside those with a '_name' must be "
                               "strings or numbers",
                               printable(label.dump())));
        continue;
      }
      const std::string text = label.is_string() ? label.get<std::string>() : label.dump();
      std::string inner;
      if (option.is_object()) {
        const std::string prefix = fmt::format("{}.{}.", name, text);
        for (const std::string& entry : entries(option, prefix)) {
          inner += inner.empty() ? "" : ", ";
          inner += entry;
        }
      }
      cases.push_back(fmt::format("{}: {}", label.dump(),
                                  inner.empty() ? "null" : fmt::format("{{{}}}", inner)));
    }
    return fmt::format("{{cases: {{{}}}}}", fmt::format("{}", joined(cases)));
  }

  static std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }

  std::string interval(const std::string& name, const Kind& kind, const Json& values) {
    std::vector<double> numbers;
    bool are_whole = true;
    for (const Json& value : values) {
      if (!value.is_number()) break;
      numbers.push_back(value.get<double>());
      are_whole = are_whole && value.is_number_integer();
    }
    if (numbers.size() != kind.numbers || values.size() != kind.numbers) {
      fail(name, fmt::format("_value of {} is {}, in numbers", kind.name, kind.values));
      return {};
    }
    const std::string_view scale = kind.scale;
    if (scale.find("normal") != std::string_view::npos) {
      if (!scale.starts_with("q_")) {
        return fmt::format("{{scale: {}, mu: {}, sigma: {}}}", scale, with_point(numbers[0]),
                           with_point(numbers[1]));
      }
      return fmt::format("{{distribution: {}, mu: {}, sigma: {}, q: {}}}", scale,
                         with_point(numbers[0]), with_point(numbers[1]),
                         config::number_text(numbers[2]));
    }
    if (std::string_view(kind.name) == "randint") return whole_numbers(name, numbers, are_whole);
    const std::string log = scale.empty() ? "" : fmt::format(", scale: {}", scale);
    if (kind.numbers == 2) {
      return fmt::format("{{min: {}, max: {}{}}}", with_point(numbers[0]), with_point(numbers[1]),
                         log);
    }
    return stepped(name, kind, numbers, are_whole, log);
  }

  // The upper end is exclusive.
  std::string whole_numbers(const std::string& name, const std::vector<double>& ends,
                            bool are_whole) {
    if (!are_whole || ends[1] <= ends[0]) {
      fail(name, "_value of randint must be [low, high], two integers, high exclusive");
      return {};
    }
    return fmt::format("{{min: {:.0f}, max: {:.0f}}}", ends[0], ends[1] - 1);
  }

  // NNI rounds to multiples of q and then clamps to the interval.
  std::string stepped(const std::string& name, const Kind& kind, const std::vector<double>& numbers,
                      bool are_whole, const std::string& log) {
    const double step = numbers[2];
    if (!(step > 0)) {
      fail(name, "q must be above 0");
      return {};
    }
    if (!is_multiple(numbers[0], step) || !is_multiple(numbers[1], step)) {
      fail(name,
           fmt::format("{} from {} to {} with q {}: NNI also samples bounds that are not multiples "
                       "of q, a sweep does not; use bounds that are",
                       kind.name, config::number_text(numbers[0]), config::number_text(numbers[1]),
                       config::number_text(step)));
      return {};
    }
    const auto text = [&](double number) {
      return are_whole ? config::number_text(number) : with_point(number);
    };
    return fmt::format("{{min: {}, max: {}, step: {}{}}}", text(numbers[0]), text(numbers[1]),
                       text(step), log);
  }

  std::string mistakes_;
};

// nlohmann::json keeps the last of duplicate keys; the first duplicate is reported in `twice`.
Json parse_json(const std::string& json, std::string& twice) {
  std::vector<std::set<std::string>> keys;  // Keys of the open objects.
  const auto look = [&](int /*depth*/, Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed).second) twice = parsed;
    return true;
  };
  return Json::parse(json, look, /*allow_exceptions=*/false);
}

}  // namespace

std::string sweep_of_nni(const std::string& json, const std::string& file_name) {
  std::string twice;
  const Json space = parse_json(json, twice);
  if (!space.is_object()) {
    throw UsageError(fmt::format("{}: not a search space of NNI, a map in JSON", file_name));
  }
  if (!twice.empty()) {
    throw UsageError(fmt::format("{}: {}: duplicate key", file_name, printable(twice)));
  }
  Writer writer;
  std::string text = "parameters:\n";
  for (const std::string& entry : writer.entries(space, "")) text += "  " + entry + "\n";
  writer.throw_if_any(file_name);
  // Parses the result, to report errors that a sweep of it would have.
  const config::Node sweep = config::parse_yaml(text, file_name);
  config::Problems problems;
  std::vector<Parameter> parameters =
      read_parameters(*sweep.find("parameters"), SweepFormat::kGallop, problems);
  problems.throw_if_any();
  try {
    static_cast<void>(Space(std::move(parameters), {}));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", file_name, error.what()));
  }
  return text;
}

}  // namespace gallop::tune
