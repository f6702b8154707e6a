#include "gallop/tune/space.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/tune/beta.h"
#include "gallop/tune/normal.h"

namespace gallop::tune {

namespace {

using Json = nlohmann::ordered_json;
using config::number_text;

constexpr double kNearStep = 1e-6;  // Relative to the step.
// Fraction of a normal distribution's mass; the quantile of 0 is infinite.
constexpr double kLeastShare = 1e-300;
constexpr double kMostOfBeta = 1e6;       // Larger parameters are slow and nearly normal.
constexpr double kLargestWhole = 0x1p53;  // Beyond it, doubles do not represent every integer.

bool is_logarithmic(Scale scale) { return scale == Scale::kLog || scale == Scale::kLogNormal; }
bool is_normal(Scale scale) { return scale == Scale::kNormal || scale == Scale::kLogNormal; }

const char* scale_name(Scale scale) {
  switch (scale) {
    case Scale::kLinear: return "linear";
    case Scale::kLog: return "log";
    case Scale::kNormal: return "normal";
    case Scale::kLogNormal: return "log-normal";
    case Scale::kBeta: return "beta";
  }
  return "";
}

double last_step(const Interval& interval) {
  return std::floor((interval.high - interval.low) / interval.step + kNearStep);
}

double highest(const Interval& interval) {
  return interval.step == 0 ? interval.high : value_on_grid(interval, last_step(interval));
}

/// The number of decimals in a number's shortest text: 2 for 0.25, 5 for 2.5e-4.
int decimal_digits(double value) {
  const std::string text = number_text(value);
  const size_t exponent_at = std::min(text.find('e'), text.size());
  const size_t point = text.find('.');
  const auto digits = point < exponent_at ? static_cast<int>(exponent_at - point - 1) : 0;
  const int exponent = exponent_at < text.size() ? std::stoi(text.substr(exponent_at + 1)) : 0;
  return std::max(digits - exponent, 0);
}

/// The bounds of an interval extended by half a step.
Range widened(const Interval& interval) {
  return {interval.low - interval.step / 2, highest(interval) + interval.step / 2};
}

/// Whether a step from either bound leads to a different double.
bool has_room_for_steps(const Interval& interval) {
  return interval.low + interval.step > interval.low &&
         interval.high - interval.step < interval.high;
}

std::string given_ends(const Interval& interval) {
  return fmt::format("from {} to {}", number_text(interval.low), number_text(interval.high));
}

std::string mistake_in_steps(const Interval& interval) {
  if (interval.step < 0 || !std::isfinite(interval.step)) {
    return fmt::format("step {}: must be above 0", number_text(interval.step));
  }
  if (interval.integer && (interval.step < 1 || std::floor(interval.step) != interval.step ||
                           std::floor(interval.low) != interval.low)) {
    return fmt::format("{} in steps of {}: not integers", given_ends(interval),
                       number_text(interval.step));
  }
  if (interval.integer &&
      std::max(std::abs(interval.low), std::abs(interval.high)) > kLargestWhole) {
    return fmt::format("{}: integers must be at most 2^53", given_ends(interval));
  }
  if (interval.low == interval.high || interval.step == 0) return {};
  if (interval.step > interval.high - interval.low) {
    return fmt::format("step {} is wider than {}", number_text(interval.step),
                       given_ends(interval));
  }
  if (has_room_for_steps(interval)) return {};
  return fmt::format("step {}: too small {}", number_text(interval.step), given_ends(interval));
}

std::string mistake_in(const Interval& interval) {
  const auto given = [&] { return given_ends(interval); };
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) {
    return fmt::format("{}: both bounds must be finite", given());
  }
  if (interval.low > interval.high) {
    return fmt::format("{}: the lower bound is above the upper", given());
  }
  if (!std::isfinite(interval.high - interval.low)) {
    return fmt::format("{}: the bounds are too far apart", given());
  }
  if (std::string mistake = mistake_in_steps(interval); !mistake.empty()) return mistake;
  if (is_logarithmic(interval.scale) && widened(interval).low <= 0) {
    return fmt::format("{}{}: a logarithmic scale requires values above {}", given(),
                       interval.step > 0 ? " in steps of " + number_text(interval.step) : "",
                       interval.step > 0 ? "half a step" : "0");
  }
  if (is_normal(interval.scale) && !(interval.deviation > 0 && std::isfinite(interval.deviation))) {
    return fmt::format("deviation {}: must be above 0", number_text(interval.deviation));
  }
  if (is_normal(interval.scale) && !std::isfinite(interval.mean)) {
    return fmt::format("mean {}: must be finite", number_text(interval.mean));
  }
  if (interval.scale == Scale::kBeta) {
    if (interval.low < 0 || interval.high > 1) {
      return fmt::format("{}: a beta distribution must be from 0 to 1", given());
    }
    for (const double parameter : {interval.a, interval.b}) {
      if (parameter > 0 && parameter <= kMostOfBeta) continue;
      return fmt::format("{} of a beta distribution: must be above 0 and at most 1e6",
                         number_text(parameter));
    }
  }
  const auto [low, high] = coordinates(interval);
  if (interval.low == interval.high || low < high) return {};
  return fmt::format("{}: no probability mass between them on the scale '{}'", given(),
                     scale_name(interval.scale));
}

std::string mistake_in(const Choices& choices) {
  if (choices.values.empty()) return "there are no values to choose from";
  std::set<std::string> seen;
  for (const std::string& value : choices.values) {
    if (!Json::accept(value)) return fmt::format("{}: not JSON", printable(value));
    if (!seen.insert(value).second) return fmt::format("duplicate value {}", printable(value));
  }
  if (choices.weights.empty()) return {};
  if (choices.weights.size() != choices.values.size()) {
    return fmt::format("{} weights for {} choices", choices.weights.size(), choices.values.size());
  }
  double sum = 0;
  for (const double weight : choices.weights) {
    if (!(weight >= 0) || std::isinf(weight)) {
      return fmt::format("weight {}: must be at least 0", number_text(weight));
    }
    sum += weight;
  }
  return sum > 0 ? "" : "all weights are 0";
}

std::string mistake_in(const Condition& condition, const std::vector<Parameter>& parameters,
                       size_t index) {
  if (condition.parent >= index) return "its condition refers to a later parameter";
  const Choices* const choices = parameters[condition.parent].choices();
  if (choices == nullptr) return "its condition refers to a parameter without choices";
  if (condition.choices.empty()) return "its condition never holds";
  for (const size_t choice : condition.choices) {
    if (choice >= choices->values.size()) return "its condition refers to an unknown choice";
  }
  return {};
}

std::string mistake_in(const std::vector<Parameter>& parameters, size_t index) {
  const Parameter& parameter = parameters[index];
  for (size_t i = 0; i < index; ++i) {
    if (parameters[i].name == parameter.name) return "duplicate name";
  }
  if (parameter.name.empty()) return "a parameter has an empty name";
  std::string mistake =
      std::visit([](const auto& domain) { return mistake_in(domain); }, parameter.domain);
  if (!mistake.empty() || !parameter.condition) return mistake;
  return mistake_in(*parameter.condition, parameters, index);
}

/// The value of a parameter in a formula: a number, or the text of a non-numeric choice.
config::Expression::Value formula_value(const Parameter& parameter, double value) {
  const Choices* const choices = parameter.choices();
  if (choices == nullptr) return value;
  const std::string& text = choices->values[static_cast<size_t>(value)];
  const Json json = Json::parse(text);
  if (json.is_boolean()) return json.get<bool>() ? 1.0 : 0.0;
  if (json.is_number()) return json.get<double>();
  return json.is_string() ? json.get<std::string>() : text;
}

Scale parse_scale(const std::string& name) {
  for (const Scale scale :
       {Scale::kLinear, Scale::kLog, Scale::kNormal, Scale::kLogNormal, Scale::kBeta}) {
    if (name == scale_name(scale)) return scale;
  }
  throw DataError(fmt::format("unknown scale '{}'", printable(name)));
}

Json json_of(const Parameter& parameter) {
  Json json{{"name", parameter.name}};
  if (const Interval* const interval = parameter.interval()) {
    json["low"] = interval->low;
    json["high"] = interval->high;
    json["scale"] = scale_name(interval->scale);
    if (interval->step > 0) json["step"] = interval->step;
    if (interval->integer) json["integer"] = true;
    if (is_normal(interval->scale)) {
      json["mean"] = interval->mean;
      json["deviation"] = interval->deviation;
    }
    if (interval->scale == Scale::kBeta) {
      json["a"] = interval->a;
      json["b"] = interval->b;
    }
  } else {
    const Choices& choices = *parameter.choices();
    for (const std::string& value : choices.values) json["choices"].push_back(Json::parse(value));
    if (!choices.weights.empty()) json["weights"] = choices.weights;
  }
  if (parameter.condition) {
    json["parent"] = parameter.condition->parent;
    json["if"] = parameter.condition->choices;
  }
  return json;
}

Parameter parameter_of(const Json& json) {
  Parameter parameter{.name = json.at("name"), .domain = {}};
  if (json.contains("choices")) {
    Choices choices;
    for (const Json& value : json.at("choices")) choices.values.push_back(value.dump());
    choices.weights = json.value("weights", std::vector<double>());
    parameter.domain = std::move(choices);
  } else {
    parameter.domain = Interval{.low = json.at("low"),
                                .high = json.at("high"),
                                .scale = parse_scale(json.at("scale")),
                                .step = json.value("step", 0.0),
                                .integer = json.value("integer", false),
                                .mean = json.value("mean", 0.0),
                                .deviation = json.value("deviation", 1.0),
                                .a = json.value("a", 1.0),
                                .b = json.value("b", 1.0)};
  }
  if (json.contains("parent")) {
    parameter.condition = Condition{.parent = json.at("parent"), .choices = json.at("if")};
  }
  return parameter;
}

double unscaled(const Interval& interval, double coordinate) {
  if (interval.scale == Scale::kBeta) return beta_quantile(coordinate, interval.a, interval.b);
  const double share = std::clamp(coordinate, kLeastShare, 1 - 0x1p-53);
  const double number = is_normal(interval.scale)
                            ? interval.mean + interval.deviation * normal_quantile(share)
                            : coordinate;
  return is_logarithmic(interval.scale) ? std::exp(number) : number;
}

}  // namespace

double value_on_grid(const Interval& interval, double steps) {
  const double sum = interval.low + steps * interval.step;
  if (interval.integer) return std::min(sum, interval.high);
  const int digits = std::max(decimal_digits(interval.low), decimal_digits(interval.step));
  // Adding 0.0 turns -0 into 0.
  const double rounded = parse_number<double>(fmt::format("{:.{}f}", sum, digits)).value() + 0.0;
  return std::clamp(rounded, interval.low, interval.high);
}

double nearest_value(const Interval& interval, double value) {
  if (interval.step == 0) return std::clamp(value, interval.low, interval.high);
  const double steps = std::round((value - interval.low) / interval.step);
  return value_on_grid(interval, std::clamp(steps, 0.0, last_step(interval)));
}

double coordinate(const Interval& interval, double value) {
  if (interval.scale == Scale::kBeta) return beta_cdf(value, interval.a, interval.b);
  const double number = is_logarithmic(interval.scale) ? std::log(value) : value;
  if (!is_normal(interval.scale)) return number;
  return normal_cdf((number - interval.mean) / interval.deviation);
}

double value_at(const Interval& interval, double coordinate) {
  return nearest_value(interval, unscaled(interval, coordinate));
}

Range coordinates(const Interval& interval) {
  const auto [low, high] = widened(interval);
  return {coordinate(interval, low), coordinate(interval, high)};
}

Range cell(const Interval& interval, double value) {
  return {coordinate(interval, value - interval.step / 2),
          coordinate(interval, value + interval.step / 2)};
}

int64_t count(const Interval& interval) {
  if (interval.low == interval.high) return 1;
  return interval.step == 0 ? 0 : static_cast<int64_t>(last_step(interval)) + 1;
}

Space::Space(std::vector<Parameter> parameters, std::vector<std::string> constraints)
    : parameters_(std::move(parameters)), constraint_texts_(std::move(constraints)) {
  std::string mistakes;
  const auto add = [&](const std::string& what, const std::string& mistake) {
    if (!mistake.empty()) {
      mistakes += fmt::format("{}{}: {}", mistakes.empty() ? "" : "\n", printable(what), mistake);
    }
  };
  if (parameters_.empty()) add("parameters", "there are no parameters");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    add(parameters_[i].name, mistake_in(parameters_, i));
  }
  for (const std::string& text : constraint_texts_) {
    constraints_.emplace_back(text);
    for (const std::string& name : constraints_.back().names()) {
      if (!find(name)) add(text, fmt::format("there is no parameter '{}'", name));
    }
  }
  if (!mistakes.empty()) throw UsageError(mistakes);
}

std::optional<size_t> Space::find(std::string_view name) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return i;
  }
  return std::nullopt;
}

bool Space::is_active(const Point& point, size_t index) const {
  const auto& condition = parameters_[index].condition;
  if (!condition) return true;
  const double chosen = point[condition->parent];
  if (std::isnan(chosen)) return false;
  const auto& choices = condition->choices;
  return std::find(choices.begin(), choices.end(), static_cast<size_t>(chosen)) != choices.end();
}

void Space::drop_inactive(Point& point) const {
  for (size_t i = 0; i < size(); ++i) {
    if (!is_active(point, i)) point[i] = kInactive;
  }
}

bool is_same_point(const Point& a, const Point& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double one, double other) {
    return one == other || (std::isnan(one) && std::isnan(other));
  });
}

bool Space::contains(const Point& point) const {
  if (point.size() != size()) return false;
  for (size_t i = 0; i < size(); ++i) {
    const double value = point[i];
    if (is_active(point, i) == std::isnan(value)) return false;
    if (std::isnan(value)) continue;
    if (const Interval* const interval = parameters_[i].interval()) {
      if (value < interval->low || value > interval->high) return false;
      // Event logs of earlier versions contain unrounded sums.
      const double off = std::abs(nearest_value(*interval, value) - value);
      if (off > kNearStep * interval->step) return false;
    } else if (!(value >= 0 &&
                 value < static_cast<double>(parameters_[i].choices()->values.size()) &&
                 std::floor(value) == value)) {
      return false;
    }
  }
  return true;
}

bool Space::allows(const Point& point) const {
  for (const config::Expression& constraint : constraints_) {
    std::vector<config::Expression::Value> values;
    for (const std::string& name : constraint.names()) {
      const size_t index = *find(name);
      if (std::isnan(point[index])) break;
      values.push_back(formula_value(parameters_[index], point[index]));
    }
    if (values.size() < constraint.names().size()) continue;
    try {
      if (!constraint.holds(values)) return false;
    } catch (const UsageError& error) {
      const auto index = static_cast<size_t>(&constraint - constraints_.data());
      throw UsageError(
          fmt::format("constraint '{}': {}", printable(constraint_texts_[index]), error.what()));
    }
  }
  return true;
}

std::string Space::value_text(size_t index, double value) const {
  if (std::isnan(value)) return "null";
  const Parameter& parameter = parameters_[index];
  if (const Choices* const choices = parameter.choices()) {
    return choices->values[static_cast<size_t>(value)];
  }
  if (parameter.interval()->integer) return fmt::format("{}", static_cast<int64_t>(value));
  return number_text(value);
}

std::optional<double> Space::parse_value(size_t index, std::string_view json) const {
  const Json given = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (given.is_discarded()) return std::nullopt;
  if (const Choices* const choices = parameters_[index].choices()) {
    for (size_t i = 0; i < choices->values.size(); ++i) {
      if (Json::parse(choices->values[i]) == given) return static_cast<double>(i);
    }
    return std::nullopt;
  }
  if (!given.is_number()) return std::nullopt;
  const Interval& interval = *parameters_[index].interval();
  const double value = given.get<double>();
  if (value < interval.low || value > interval.high) return std::nullopt;
  const double known = nearest_value(interval, value);
  if (std::abs(known - value) > kNearStep * interval.step) return std::nullopt;
  return known;
}

std::string Space::to_json() const {
  Json json{{"parameters", Json::array()}, {"constraints", constraint_texts_}};
  for (const Parameter& parameter : parameters_) json["parameters"].push_back(json_of(parameter));
  return json.dump();
}

Space Space::from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    std::vector<Parameter> parameters;
    for (const Json& parameter : json.at("parameters")) {
      parameters.push_back(parameter_of(parameter));
    }
    return {std::move(parameters), json.at("constraints").get<std::vector<std::string>>()};
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not a space: {}", error.what()));
  } catch (const UsageError& error) {
    throw DataError(fmt::format("not a space: {}", error.what()));
  }
}

}  // namespace gallop::tune
