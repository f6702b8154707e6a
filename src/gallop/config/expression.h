#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gallop::config {

/// A formula over named values, such as `width * depth <= 4096 and model.name != "mlp"`.
///
/// Operators by ascending precedence: `or`; `and`; `not`; `<` `<=` `>` `>=` `==` (also `=`) `!=`;
/// `+` `-`; `*` `/` `%`; unary `-`; `^`. Functions: `min` and `max` of several values, `abs`,
/// `sqrt`, `exp`, `log`, `floor`, `ceil` of one. `true` is 1, `false` is 0. Strings are quoted and
/// can only be compared. Comparisons, `floor`, `ceil` and `%` allow for the rounding errors of the
/// arithmetic in their operands: 0.1 + 0.2 equals 0.3. NaN is equal to nothing, and false in `and`,
/// `or` and `not`. Names consist of letters, digits, `_` and `.`; other characters need
/// backquotes, as in MLflow: "metrics.`val-loss`".
class Expression {
 public:
  using Value = std::variant<double, std::string>;

  /// Throws UsageError with the position of the first mistake.
  explicit Expression(std::string_view text);

  /// The names in the formula, without duplicates.
  const std::vector<std::string>& names() const { return names_; }

  /// `values` has one element per item of names(). Throws UsageError for arithmetic with strings,
  /// or an ordering of a string and a number.
  Value evaluate(const std::vector<Value>& values) const;
  /// Whether the result is a number other than 0, or NaN.
  bool holds(const std::vector<Value>& values) const;

  struct Term;

 private:
  std::vector<std::string> names_;
  std::shared_ptr<const Term> root_;
};

}  // namespace gallop::config
