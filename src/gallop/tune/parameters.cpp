#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/tune/sweep.h"
#include "gallop/tune/wandb.h"

namespace gallop::tune {

namespace {

using config::Node;
using config::Problems;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Truncation of normal distributions, in standard deviations to both sides.
constexpr double kDeviations = 6;

/// What `min` and `max` give: the bounds, or the natural logarithms of them or of their
/// reciprocals.
enum class Ends : uint8_t { kValues, kLogarithms, kInverseLogarithms };

/// A distribution of a W&B sweep and its equivalent here.
struct Distribution {
  const char* name;
  Scale scale;
  bool has_step;  ///< Whether it has a step `q`.
  Ends ends;
  bool is_integer;
};

constexpr std::array kDistributions = {
    Distribution{"uniform", Scale::kLinear, false, Ends::kValues, false},
    Distribution{"q_uniform", Scale::kLinear, true, Ends::kValues, false},
    Distribution{"int_uniform", Scale::kLinear, false, Ends::kValues, true},
    Distribution{"log_uniform", Scale::kLog, false, Ends::kLogarithms, false},
    Distribution{"q_log_uniform", Scale::kLog, true, Ends::kLogarithms, false},
    Distribution{"inv_log_uniform", Scale::kLog, false, Ends::kInverseLogarithms, false},
    Distribution{"log_uniform_values", Scale::kLog, false, Ends::kValues, false},
    Distribution{"q_log_uniform_values", Scale::kLog, true, Ends::kValues, false},
    Distribution{"inv_log_uniform_values", Scale::kLog, false, Ends::kValues, false},
    Distribution{"normal", Scale::kNormal, false, Ends::kValues, false},
    Distribution{"q_normal", Scale::kNormal, true, Ends::kValues, false},
    Distribution{"log_normal", Scale::kLogNormal, false, Ends::kValues, false},
    Distribution{"q_log_normal", Scale::kLogNormal, true, Ends::kValues, false},
    Distribution{"beta", Scale::kBeta, false, Ends::kValues, false},
    Distribution{"q_beta", Scale::kBeta, true, Ends::kValues, false},
};

bool is_whole(const Node& node) {
  return config::as_integer(node) && node.scalar.find_first_of(".eE") == std::string::npos;
}

std::string json_of(const Node& node, SweepFormat format) {
  return format == SweepFormat::kWandb ? yaml_1_1_value(node).dump() : config::to_json(node);
}

/// Reads the parameters of a map, including those nested in choices.
class Reader {
 public:
  Reader(SweepFormat format, Problems& problems) : format_(format), problems_(problems) {}

  void read_map(const Node& map, const std::string& prefix,
                const std::optional<Condition>& condition) {
    if (map.kind != Node::Kind::kMap) {
      problems_.add(map.origin, prefix, "expected a map of parameters");
      return;
    }
    for (const Node::Entry& entry : map.entries) {
      read(prefix.empty() ? entry.key : prefix + "." + entry.key, entry.value, condition);
    }
  }

  std::vector<Parameter> take() { return std::move(parameters_); }

 private:
  void fail(const Node& node, const std::string& name, const std::string& what) {
    problems_.add(node.origin, "parameters." + name, what);
  }

  void read(const std::string& name, const Node& node, const std::optional<Condition>& condition) {
    switch (node.kind) {
      case Node::Kind::kNull: return fail(node, name, "there are no values to choose from");
      case Node::Kind::kScalar: return add(name, Choices{{json_of(node, format_)}}, condition);
      case Node::Kind::kList: return add(name, choices_of(node), condition);
      case Node::Kind::kMap: break;
    }
    if (const Node* const nested = node.find("parameters")) {
      check_keys(name, node, {"parameters"});
      return read_map(*nested, name, condition);
    }
    if (node.find("cases") != nullptr) return read_cases(name, node, condition);
    if (node.find("values") != nullptr || node.find("value") != nullptr) {
      return read_choices(name, node, condition);
    }
    read_interval(name, node, condition);
  }

  void add(const std::string& name, std::variant<Interval, Choices> domain,
           const std::optional<Condition>& condition) {
    parameters_.push_back({name, std::move(domain), condition});
  }

  void check_keys(const std::string& name, const Node& node,
                  const std::vector<std::string>& known) {
    for (const Node::Entry& entry : node.entries) {
      if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
      const std::string nearest = nearest_name(entry.key, known);
      problems_.add(entry.origin, "parameters." + name + "." + entry.key,
                    fmt::format("unknown key{}; known are {}",
                                nearest.empty() ? "" : ", did you mean '" + nearest + "'?",
                                join_names(known, "and")));
    }
  }

  Choices choices_of(const Node& list) const {
    Choices choices;
    for (const Node& item : list.items) choices.values.push_back(json_of(item, format_));
    return choices;
  }

  void read_choices(const std::string& name, const Node& node,
                    const std::optional<Condition>& condition) {
    check_keys(name, node, {"values", "value", "probabilities", "weights", "distribution"});
    if (node.find("value") != nullptr && node.find("values") != nullptr) {
      return fail(node, name, "value and values: give one of them");
    }
    if (const Node* const value = node.find("value")) {
      return add(name, Choices{{json_of(*value, format_)}}, condition);
    }
    const Node& values = *node.find("values");
    if (values.kind != Node::Kind::kList) return fail(values, name, "values: expected a list");
    Choices choices = choices_of(values);
    for (const char* key : {"probabilities", "weights"}) {
      const Node* const weights = node.find(key);
      if (weights == nullptr) continue;
      if (weights->kind != Node::Kind::kList) {
        return fail(*weights, name, fmt::format("{}: expected a list of numbers", key));
      }
      for (const Node& weight : weights->items) {
        const auto number = config::as_number(weight);
        if (!number) return fail(weight, name, fmt::format("{}: expected numbers", key));
        choices.weights.push_back(*number);
      }
    }
    add(name, std::move(choices), condition);
  }

  // A map from each choice to the parameters that are active with it.
  void read_cases(const std::string& name, const Node& node,
                  const std::optional<Condition>& condition) {
    check_keys(name, node, {"cases"});
    const Node& cases = *node.find("cases");
    if (cases.kind != Node::Kind::kMap) {
      return fail(cases, name, "cases: expected a map from each choice to its parameters");
    }
    Choices choices;
    for (const Node::Entry& entry : cases.entries) {
      choices.values.push_back(json_of(Node::make_scalar(entry.key), format_));
    }
    const size_t parent = parameters_.size();
    add(name, std::move(choices), condition);
    for (size_t i = 0; i < cases.entries.size(); ++i) {
      const Node& parameters = cases.entries[i].value;
      if (parameters.kind == Node::Kind::kNull) continue;
      read_map(parameters, "", Condition{.parent = parent, .choices = {i}});
    }
  }

  std::optional<double> number_at(const std::string& name, const Node& node, const char* key,
                                  bool is_needed) {
    const Node* const value = node.find(key);
    if (value == nullptr) {
      if (is_needed) fail(node, name, fmt::format("'{}' is missing", key));
      return std::nullopt;
    }
    const auto number = config::as_number(*value);
    if (!number) fail(*value, name, fmt::format("{}: expected a number", key));
    return number;
  }

  const Distribution* distribution_of(const std::string& name, const Node& node) {
    if (const Node* const scale = node.find("scale")) {
      for (const auto& [word, same] : {std::pair{"linear", "uniform"},
                                       {"log", "log_uniform_values"},
                                       {"normal", "normal"},
                                       {"log-normal", "log_normal"},
                                       {"beta", "beta"}}) {
        if (scale->scalar == word) return find_distribution(same);
      }
      fail(*scale, name, "scale: expected linear, log, normal, log-normal or beta");
      return nullptr;
    }
    const Node* const given = node.find("distribution");
    if (given == nullptr) return find_distribution("uniform");
    for (const auto& [word, key] : {std::pair{"constant", "value"},
                                    {"categorical", "values"},
                                    {"categorical_w_probabilities", "values"}}) {
      if (given->scalar != word) continue;
      fail(node, name, fmt::format("'{}' is missing", key));
      return nullptr;
    }
    const Distribution* const found = find_distribution(given->scalar);
    if (found == nullptr) {
      std::vector<std::string> names = {"constant", "categorical"};
      for (const Distribution& one : kDistributions) names.emplace_back(one.name);
      fail(*given, name,
           fmt::format("unknown distribution '{}'; known are {}", printable(given->scalar),
                       join_names(names, "and")));
    }
    return found;
  }

  static const Distribution* find_distribution(std::string_view name) {
    for (const Distribution& one : kDistributions) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }

  void read_interval(const std::string& name, const Node& node,
                     const std::optional<Condition>& condition) {
    const Distribution* const distribution = distribution_of(name, node);
    if (distribution == nullptr) return;
    const bool is_beta = distribution->scale == Scale::kBeta;
    const bool is_normal =
        distribution->scale == Scale::kNormal || distribution->scale == Scale::kLogNormal;
    std::vector<std::string> known = {"min", "max", "scale", distribution->has_step ? "q" : "step"};
    if (is_normal) known.insert(known.end(), {"mu", "sigma"});
    if (is_beta) known.insert(known.end(), {"a", "b"});
    known.emplace_back("distribution");
    check_keys(name, node, known);
    Interval interval{.scale = distribution->scale, .step = 0};
    if (is_normal) {
      interval.mean = number_at(name, node, "mu", false).value_or(0);
      interval.deviation = number_at(name, node, "sigma", false).value_or(1);
    }
    if (is_beta) {
      interval.a = number_at(name, node, "a", false).value_or(1);
      interval.b = number_at(name, node, "b", false).value_or(1);
    }
    if (!read_ends(name, node, *distribution, interval)) return;
    read_step(name, node, *distribution, interval);
    add(name, interval, condition);
  }

  bool read_ends(const std::string& name, const Node& node, const Distribution& distribution,
                 Interval& interval) {
    const bool is_needed = interval.scale == Scale::kLinear || interval.scale == Scale::kLog;
    const auto low = number_at(name, node, "min", is_needed);
    const auto high = number_at(name, node, "max", is_needed);
    if (is_needed && (!low || !high)) return false;
    const auto end = [&](double side) {
      if (interval.scale == Scale::kBeta) return side < 0 ? 0.0 : 1.0;
      const double number = interval.mean + side * kDeviations * interval.deviation;
      return interval.scale == Scale::kLogNormal ? std::exp(number) : number;
    };
    interval.low = low ? *low : end(-1);
    interval.high = high ? *high : end(1);
    if (distribution.ends == Ends::kInverseLogarithms) {
      std::swap(interval.low, interval.high);
      interval.low = -interval.low;
      interval.high = -interval.high;
    }
    if (distribution.ends != Ends::kValues) {
      interval.low = std::exp(interval.low);
      interval.high = std::exp(interval.high);
    }
    return true;
  }

  void read_step(const std::string& name, const Node& node, const Distribution& distribution,
                 Interval& interval) {
    const Node* const low = node.find("min");
    const Node* const high = node.find("max");
    interval.integer =
        distribution.is_integer || (node.find("distribution") == nullptr && low != nullptr &&
                                    high != nullptr && is_whole(*low) && is_whole(*high));
    if (interval.integer) interval.step = 1;
    if (const auto step = number_at(name, node, "step", false)) {
      interval.step = *step;
      if (!(*step > 0)) fail(*node.find("step"), name, "step: must be above 0");
      interval.integer = interval.integer && std::floor(*step) == *step;
    }
    if (!distribution.has_step) return;
    // Multiples of q, since W&B rounds its samples.
    const double q = number_at(name, node, "q", false).value_or(1);
    if (!(q > 0)) return fail(node, name, "q: must be above 0");
    interval.step = q;
    const Interval multiples{.low = 0, .high = kInfinity, .step = q};
    const auto multiple = [&](double end) {
      return std::copysign(value_on_grid(multiples, std::round(std::abs(end) / q)), end) + 0.0;
    };
    interval.low = multiple(interval.low);
    interval.high = multiple(interval.high);
    // W&B's samples are integers if q is one, but not if it is 1.0.
    const Node* const given = node.find("q");
    interval.integer =
        format_ == SweepFormat::kWandb ? given == nullptr || is_whole(*given) : std::floor(q) == q;
    const bool is_log = interval.scale == Scale::kLog || interval.scale == Scale::kLogNormal;
    if (is_log && interval.low <= 0) interval.low = q;
  }

  const SweepFormat format_;
  Problems& problems_;
  std::vector<Parameter> parameters_;
};

}  // namespace

std::vector<Parameter> read_parameters(const Node& map, SweepFormat format, Problems& problems) {
  Reader reader(format, problems);
  reader.read_map(map, "", std::nullopt);
  return reader.take();
}

Point read_point(const Space& space, const Node& map, SweepFormat format, Problems& problems) {
  Point point(space.size(), kInactive);
  for (const Node::Entry& entry : map.entries) {
    const auto index = space.find(entry.key);
    if (!index) {
      problems.add(entry.origin, entry.key, "there is no such parameter");
      continue;
    }
    const auto value = space.parse_value(*index, json_of(entry.value, format));
    if (!value) {
      problems.add(entry.origin, entry.key,
                   fmt::format("{} is not one of its values", printable(entry.value.scalar)));
      continue;
    }
    point[*index] = *value;
  }
  for (size_t i = 0; i < space.size(); ++i) {
    const Choices* const choices = space[i].choices();
    if (std::isnan(point[i]) && choices != nullptr && choices->values.size() == 1) point[i] = 0;
    if (space.is_active(point, i) && std::isnan(point[i])) {
      problems.add(map.origin, space[i].name, "has no value here");
    }
  }
  space.drop_inactive(point);
  return point;
}

}  // namespace gallop::tune
