#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gallop/config/expression.h"

namespace gallop::tune {

/// The scale on which values are sampled uniformly: the value itself, its logarithm, or the
/// cumulative distribution function of a normal, log-normal or beta distribution.
enum class Scale { kLinear, kLog, kNormal, kLogNormal, kBeta };

/// A closed interval of numbers.
struct Interval {
  double low = 0, high = 1;
  Scale scale = Scale::kLinear;
  double step = 0;                 ///< If above 0, only low, low + step, and so on.
  bool integer = false;            ///< Written without a decimal point; `step` is then an integer.
  double mean = 0, deviation = 1;  ///< For scales with a normal distribution.
  double a = 1, b = 1;             ///< For the beta scale, from 0 to 1.
};

/// A categorical parameter: each value as JSON text, `"relu"`, `0.1` or `[64, 64]`. A constant has
/// a single choice.
struct Choices {
  std::vector<std::string> values;
  std::vector<double> weights{};  ///< Relative probabilities; empty: uniform.
};

/// Makes a parameter active only if another one has one of these values.
struct Condition {
  size_t parent = 0;            ///< Index of an earlier parameter with choices.
  std::vector<size_t> choices;  ///< Any of these.
};

struct Parameter {
  std::string name;
  std::variant<Interval, Choices> domain;
  std::optional<Condition> condition{};

  const Interval* interval() const { return std::get_if<Interval>(&domain); }
  const Choices* choices() const { return std::get_if<Choices>(&domain); }
};

/// A value for each parameter, in order: the number, or the index of the choice. NaN for inactive
/// parameters.
using Point = std::vector<double>;

/// Whether all values are equal, and the same parameters are inactive.
bool is_same_point(const Point& a, const Point& b);

constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

struct Range {
  double low, high;
};

/// The exact decimal number low + steps * step, at most the upper bound: 3 steps of 0.1 from 0 are
/// 0.3.
double value_on_grid(const Interval& interval, double steps);
/// The value of an interval that is nearest to a number.
double nearest_value(const Interval& interval, double value);
/// The coordinate of a value on the scale on which sampling is uniform.
double coordinate(const Interval& interval, double value);
/// The inverse of coordinate(); the nearest valid value.
double value_at(const Interval& interval, double coordinate);
/// The range of coordinates of an interval; extended by half a step at both ends if it has steps,
/// so that all values are equally likely.
Range coordinates(const Interval& interval);
/// The range of coordinates whose nearest value is this one. Without steps, both ends are its
/// coordinate.
Range cell(const Interval& interval, double value);
/// The number of values; 0 if not countable.
int64_t count(const Interval& interval);

/// The search space.
class Space {
 public:
  Space() = default;
  /// `constraints` are formulas over parameter names. Throws UsageError with one line per mistake:
  /// no parameters, a duplicate name, reversed bounds, a logarithm of values that are not positive,
  /// a step wider than its interval or too fine for its values, bounds without probability mass, no
  /// choices, a duplicate choice, a condition on a later parameter or on an unknown choice, a
  /// constraint with an unknown name.
  Space(std::vector<Parameter> parameters, std::vector<std::string> constraints);

  size_t size() const { return parameters_.size(); }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const Parameter& operator[](size_t index) const { return parameters_[index]; }
  const std::vector<std::string>& constraints() const { return constraint_texts_; }
  std::optional<size_t> find(std::string_view name) const;

  /// Whether the condition of a parameter holds, given the values of earlier ones.
  bool is_active(const Point& point, size_t index) const;
  /// Sets inactive parameters to kInactive.
  void drop_inactive(Point& point) const;
  /// Whether each value is valid for its parameter, and exactly the inactive ones are kInactive.
  bool contains(const Point& point) const;
  /// Whether all constraints hold. A constraint on an inactive parameter holds.
  bool allows(const Point& point) const;

  /// A value as JSON text, `null` for kInactive.
  std::string value_text(size_t index, double value) const;
  /// The inverse of value_text(); nothing if it is not a value of this parameter. A number within a
  /// millionth of a step is rounded to it.
  std::optional<double> parse_value(size_t index, std::string_view json) const;

  /// Serializes the space as JSON. Two spaces with equal texts are equal. parse_space() throws
  /// DataError if the text is not a space.
  std::string to_json() const;
  static Space from_json(std::string_view text);

 private:
  std::vector<Parameter> parameters_;
  std::vector<std::string> constraint_texts_;
  std::vector<config::Expression> constraints_;
};

}  // namespace gallop::tune
