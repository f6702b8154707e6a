#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gallop::config {

/// A formula over named values, as `width * depth <= 4096 and model.name != "mlp"`.
///
/// From weak to strong: `or`; `and`; `not`; `<` `<=` `>` `>=` `==` (also `=`) `!=`; `+` `-`; `*`
/// `/`
/// `%`; unary `-`; `^`. Functions: `min` and `max` of several, `abs`, `sqrt`, `exp`, `log`,
/// `floor`, `ceil` of one. `true` is 1, `false` 0. Texts stand in quotes and are only compared.
/// Names have letters, digits, `_` and `.`; what else is in one stands in backquotes, as in MLflow:
/// "metrics.`val-loss`".
class Expression {
 public:
  using Value = std::variant<double, std::string>;

  /// Throws UsageError with the place of the first mistake.
  explicit Expression(std::string_view text);

  /// Names that it asks for, each once.
  const std::vector<std::string>& names() const { return names_; }

  /// `values` has one for each of names(). Throws UsageError where a text is calculated with or
  /// compared with a number by order.
  Value evaluate(const std::vector<Value>& values) const;
  /// Whether that is a number other than 0.
  bool holds(const std::vector<Value>& values) const;

  struct Term;

 private:
  std::vector<std::string> names_;
  std::shared_ptr<const Term> root_;
};

}  // namespace gallop::config
