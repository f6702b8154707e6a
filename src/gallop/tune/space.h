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

/// Where draws are uniform: in the number itself, in its logarithm, or in the share of a normal
/// distribution below it (below its logarithm), or of a beta distribution.
enum class Scale { kLinear, kLog, kNormal, kLogNormal, kBeta };

/// Numbers between two ends, which belong to it.
struct Interval {
  double low = 0, high = 1;
  Scale scale = Scale::kLinear;
  double step = 0;                 ///< Above 0: only low, low + step, and so on.
  bool integer = false;            ///< Written without a point; `step` is a whole number then.
  double mean = 0, deviation = 1;  ///< Of the scales with a normal distribution.
  double a = 1, b = 1;             ///< Of the scale with a beta distribution, from 0 to 1.
};

/// One of several, each as JSON text: `"relu"`, `0.1`, `[64, 64]`. A constant is a choice of one.
struct Choices {
  std::vector<std::string> values;
  std::vector<double> weights{};  ///< How often each is to be drawn; empty for equally often.
};

/// A parameter has a value only where another one has been chosen so.
struct Condition {
  size_t parent = 0;            ///< Index of a parameter with choices, before this one.
  std::vector<size_t> choices;  ///< Any of these.
};

struct Parameter {
  std::string name;
  std::variant<Interval, Choices> domain;
  std::optional<Condition> condition{};

  const Interval* interval() const { return std::get_if<Interval>(&domain); }
  const Choices* choices() const { return std::get_if<Choices>(&domain); }
};

/// A value for each parameter in their order: the number, or the index of the choice. NaN where the
/// condition of a parameter does not hold.
using Point = std::vector<double>;

/// Whether all values are, and the same parameters have none.
bool is_same_point(const Point& a, const Point& b);

constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();

struct Range {
  double low, high;
};

/// `steps` steps from the low end, at most the high one: the decimal number that low + steps * step
/// is by their digits as they are written, so that 3 steps of 0.1 from 0 are 0.3.
double value_on_grid(const Interval& interval, double steps);
/// The value of an interval that is nearest to a number.
double nearest_value(const Interval& interval, double value);
/// Where a value stands on the scale on which draws are uniform.
double coordinate(const Interval& interval, double value);
/// The inverse; the nearest value that there is.
double value_at(const Interval& interval, double coordinate);
/// The coordinates of an interval; half a step wider at both ends where it has steps, so that each
/// value has its share.
Range coordinates(const Interval& interval);
/// The coordinates that are nearest to a value. Without steps both are those of the value.
Range cell(const Interval& interval, double value);
/// How many values there are; 0 where they cannot be counted.
int64_t count(const Interval& interval);

/// What a search chooses from.
class Space {
 public:
  Space() = default;
  /// `constraints` have the names of parameters. Throws UsageError with a line for each mistake:
  /// no parameter, a name twice, ends in the wrong order, a logarithm of what is not positive, a
  /// step wider than its interval or too fine for its numbers, ends between which a distribution
  /// has nothing, no choice, a choice twice, a condition that comes after its parameter or asks for
  /// a choice that is not there, a constraint with an unknown name.
  Space(std::vector<Parameter> parameters, std::vector<std::string> constraints);

  size_t size() const { return parameters_.size(); }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const Parameter& operator[](size_t index) const { return parameters_[index]; }
  const std::vector<std::string>& constraints() const { return constraint_texts_; }
  std::optional<size_t> find(std::string_view name) const;

  /// Whether the condition of a parameter holds, those before it being decided.
  bool is_active(const Point& point, size_t index) const;
  /// kInactive for what has no value at this point.
  void drop_inactive(Point& point) const;
  /// Whether each value is one of its parameter's, and those without one are inactive.
  bool contains(const Point& point) const;
  /// Whether all constraints hold. One that names an inactive parameter does.
  bool allows(const Point& point) const;

  /// A value as JSON text, `null` for kInactive.
  std::string value_text(size_t index, double value) const;
  /// The inverse; nothing where it is no value of this parameter. A number is taken to the nearest
  /// step if it is within a millionth of it.
  std::optional<double> parse_value(size_t index, std::string_view json) const;

  /// All of it as JSON, and back. Two spaces with equal texts are the same. The inverse throws
  /// DataError where the text is no space.
  std::string to_json() const;
  static Space from_json(std::string_view text);

 private:
  std::vector<Parameter> parameters_;
  std::vector<std::string> constraint_texts_;
  std::vector<config::Expression> constraints_;
};

}  // namespace gallop::tune
