#include "gallop/config/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::config {

using Value = Expression::Value;

/// A number, a string, the value of a name, or an operation on other terms.
struct Expression::Term {
  enum class Kind { kConstant, kName, kOperation };
  Kind kind = Kind::kConstant;
  Value constant = 0.0;
  size_t name = 0;
  std::string operation;
  std::vector<Term> operands;
};

namespace {

using Term = Expression::Term;

constexpr int kDeepest = 64;
// Limits the nesting of chains such as 1 + 1 + ..., each evaluated within the next.
constexpr int kMostOperations = 5000;

/// A number with a bound of its rounding error: the difference from the exact result if names and
/// constants stand for decimal numbers. 0 for these themselves, so that they are compared exactly.
struct Number {
  double value = 0;
  double error = 0;
};

/// Whether a double represents an integer without rounding.
bool is_integer(double value) { return std::floor(value) == value && std::abs(value) <= 0x1p53; }

double half_ulp(double value) {
  const double size = std::abs(value);
  return (std::nextafter(size, std::numeric_limits<double>::infinity()) - size) / 2;
}

/// The error of an operand, which for a decimal fraction is that of the nearest double.
double input_error(const Number& number) {
  if (number.error > 0 || is_integer(number.value)) return number.error;
  return half_ulp(number.value);
}

/// A result with the errors of its operands, amplified by the operation, and its own.
Number rounded(double value, double operand_errors) {
  const bool is_exact = operand_errors == 0 && is_integer(value);
  const double error = is_exact ? 0 : operand_errors + half_ulp(value);
  return {value, std::isfinite(error) ? error : 0};
}

Number sum(const Number& a, const Number& b) {
  return rounded(a.value + b.value, input_error(a) + input_error(b));
}

Number product(const Number& a, const Number& b) {
  return rounded(a.value * b.value,
                 std::abs(a.value) * input_error(b) + std::abs(b.value) * input_error(a));
}

Number quotient(const Number& a, const Number& b) {
  const double value = a.value / b.value;
  return rounded(value, (input_error(a) + std::abs(value) * input_error(b)) / std::abs(b.value));
}

Number power(const Number& a, const Number& b) {
  const double value = std::pow(a.value, b.value);
  const double relative = std::abs(b.value / a.value) * input_error(a) +
                          std::abs(std::log(std::abs(a.value))) * input_error(b);
  return rounded(value, relative == 0 ? 0 : relative * std::abs(value));
}

bool is_nearly(const Number& a, const Number& b) {
  if (a.value == b.value) return true;
  if (a.error == 0 && b.error == 0) return false;
  constexpr double kMargin = 1 + 0x1p-20;  // The bounds themselves are rounded.
  return std::abs(a.value - b.value) <= kMargin * (input_error(a) + input_error(b));
}

/// The integer that a number is, but for its rounding error.
std::optional<double> nearly_integer(const Number& number) {
  const double nearest = std::round(number.value);
  return is_nearly(number, {nearest}) ? std::optional(nearest) : std::nullopt;
}

Number remainder(const Number& a, const Number& b) {
  const Number steps = quotient(a, b);
  const double error = input_error(a) + std::abs(steps.value) * input_error(b);
  const bool is_multiple = error > 0 && nearly_integer(steps);
  return rounded(is_multiple ? 0 : std::fmod(a.value, b.value), error);
}

struct Function {
  const char* name;
  bool takes_several;
  Number (*compute)(const std::vector<Number>& arguments);
};

bool is_less(const Number& a, const Number& b) { return a.value < b.value; }

const Function kFunctions[] = {
    {"min", true, [](const auto& x) { return *std::min_element(x.begin(), x.end(), is_less); }},
    {"max", true, [](const auto& x) { return *std::max_element(x.begin(), x.end(), is_less); }},
    {"abs", false,
     [](const auto& x) {
       return Number{std::abs(x[0].value), x[0].error};
     }},
    {"sqrt", false,
     [](const auto& x) {
       const double root = std::sqrt(x[0].value);
       return rounded(root, root > 0 ? input_error(x[0]) / (2 * root) : 0);
     }},
    {"exp", false,
     [](const auto& x) {
       const double value = std::exp(x[0].value);
       return rounded(value, value * input_error(x[0]));
     }},
    {"log", false,
     [](const auto& x) {
       return rounded(std::log(x[0].value), input_error(x[0]) / std::abs(x[0].value));
     }},
    {"floor", false,
     [](const auto& x) { return Number{nearly_integer(x[0]).value_or(std::floor(x[0].value))}; }},
    {"ceil", false,
     [](const auto& x) { return Number{nearly_integer(x[0]).value_or(std::ceil(x[0].value))}; }},
};

const Function* find_function(std::string_view name) {
  for (const Function& function : kFunctions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

// Binary operators by precedence, lowest first; left-associative within a level.
const std::vector<std::vector<std::string_view>> kLevels = {
    {"or"}, {"and"}, {"<=", ">=", "==", "!=", "<", ">", "="}, {"+", "-"}, {"*", "/", "%"}};
constexpr size_t kComparisons = 2;

/// A recursive-descent parser.
class Parser {
 public:
  Parser(std::string_view text, std::vector<std::string>& names) : text_(text), names_(names) {}

  Term parse() {
    Term term = level(0);
    skip_blanks();
    if (at_ < text_.size()) fail("unexpected text");
    return term;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(fmt::format("'{}': at letter {}: {}", printable(text_), at_ + 1, what));
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  static bool is_word_letter(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_' || letter == '.';
  }

  /// Consumes an operator if it comes next; alphabetic ones only as whole words.
  bool take(std::string_view wanted) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    const size_t end = at_ + wanted.size();
    if (is_word_letter(wanted[0]) && end < text_.size() && is_word_letter(text_[end])) return false;
    at_ = end;
    return true;
  }

  Term operation(std::string_view name, std::vector<Term> operands) {
    if (++operations_ > kMostOperations) fail("the formula is too long");
    return {.kind = Term::Kind::kOperation,
            .operation = std::string(name),
            .operands = std::move(operands)};
  }

  // Moves both, as an initializer list would copy all subterms.
  Term operation(std::string_view name, Term left, Term right) {
    std::vector<Term> operands;
    operands.reserve(2);
    operands.push_back(std::move(left));
    operands.push_back(std::move(right));
    return operation(name, std::move(operands));
  }

  Term level(size_t number) {
    if (number == kLevels.size()) return unary();
    if (number == kComparisons && take("not")) return operation("not", {deeper(kComparisons)});
    Term left = level(number + 1);
    for (bool is_first = true;; is_first = false) {
      const auto& operators = kLevels[number];
      const auto found = std::find_if(operators.begin(), operators.end(),
                                      [&](std::string_view name) { return take(name); });
      if (found == operators.end()) return left;
      // '0.2 < x < 0.4' would compare 0 or 1 with 0.4.
      if (number == kComparisons && !is_first) {
        fail("two comparisons in a row; join them with 'and'");
      }
      left = operation(*found, std::move(left), level(number + 1));
    }
  }

  Term deeper(size_t number) {
    if (++depth_ > kDeepest) fail("nested too deeply");
    Term term = level(number);
    --depth_;
    return term;
  }

  Term unary() {
    if (!take("-")) return power();
    if (++depth_ > kDeepest) fail("nested too deeply");
    Term term = operation("negate", {unary()});
    --depth_;
    return term;
  }

  Term power() {
    Term base = primary();
    if (!take("^")) return base;
    if (++depth_ > kDeepest) fail("nested too deeply");
    Term term = operation("^", std::move(base), unary());
    --depth_;
    return term;
  }

  Term primary() {
    if (take("(")) {
      Term term = deeper(0);
      if (!take(")")) fail("')' is missing");
      return term;
    }
    skip_blanks();
    if (at_ == text_.size()) fail("a value is missing");
    const char letter = text_[at_];
    if (letter == '"' || letter == '\'') return quoted(letter);
    if (std::isdigit(static_cast<unsigned char>(letter)) || letter == '.') return number();
    if (std::isalpha(static_cast<unsigned char>(letter)) || letter == '_' || letter == '`') {
      return word();
    }
    fail("a value is missing");
  }

  Term quoted(char mark) {
    const size_t end = text_.find(mark, at_ + 1);
    if (end == std::string_view::npos) fail("the quote is not closed");
    Term term{.constant = std::string(text_.substr(at_ + 1, end - at_ - 1))};
    at_ = end + 1;
    return term;
  }

  Term number() {
    double value = 0;
    const auto [stop, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("not a number");
    at_ = static_cast<size_t>(stop - text_.data());
    return {.constant = value};
  }

  Term word() {
    std::string name;
    bool is_quoted = false;
    while (at_ < text_.size() && (is_word_letter(text_[at_]) || text_[at_] == '`')) {
      is_quoted = is_quoted || text_[at_] == '`';
      name += text_[at_] == '`' ? backquoted() : std::string(1, text_[at_++]);
    }
    if (!is_quoted) {
      if (name == "true" || name == "false") return {.constant = name == "true" ? 1.0 : 0.0};
      if (take("(")) return call(name);
    }
    auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) found = names_.insert(names_.end(), name);
    return {.kind = Term::Kind::kName, .name = static_cast<size_t>(found - names_.begin())};
  }

  std::string backquoted() {
    const size_t end = text_.find('`', at_ + 1);
    if (end == std::string_view::npos) fail("the quote is not closed");
    std::string name(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return name;
  }

  Term call(const std::string& name) {
    const Function* const function = find_function(name);
    if (function == nullptr) fail(fmt::format("unknown function '{}'", name));
    std::vector<Term> arguments;
    do {
      arguments.push_back(deeper(0));
    } while (take(","));
    if (!take(")")) fail("')' is missing");
    if (arguments.size() > 1 && !function->takes_several) {
      fail(fmt::format("{}() takes one value", name));
    }
    return operation(name, std::move(arguments));
  }

  std::string_view text_;
  std::vector<std::string>& names_;
  size_t at_ = 0;
  int depth_ = 0, operations_ = 0;
};

using Result = std::variant<Number, std::string>;

Number number_of(const Result& result) {
  if (const Number* const number = std::get_if<Number>(&result)) return *number;
  throw UsageError(fmt::format("'{}' is a string, but a number is required",
                               printable(std::get<std::string>(result))));
}

Result result_of(const Value& value) {
  if (const double* const number = std::get_if<double>(&value)) return Number{*number};
  return std::get<std::string>(value);
}

Number truth(bool is_true) { return {is_true ? 1.0 : 0.0}; }

bool is_true(const Number& number) { return number.value != 0 && !std::isnan(number.value); }

bool is_equal(const Result& a, const Result& b) {
  const Number* const number = std::get_if<Number>(&a);
  const Number* const other = std::get_if<Number>(&b);
  if (number != nullptr && other != nullptr) return is_nearly(*number, *other);
  return number == nullptr && other == nullptr &&
         std::get<std::string>(a) == std::get<std::string>(b);
}

Number computed(std::string_view operation, const Number& a, const Number& b) {
  if (operation == "<") return truth(a.value < b.value && !is_nearly(a, b));
  if (operation == "<=") return truth(a.value < b.value || is_nearly(a, b));
  if (operation == ">") return truth(a.value > b.value && !is_nearly(a, b));
  if (operation == ">=") return truth(a.value > b.value || is_nearly(a, b));
  if (operation == "+") return sum(a, b);
  if (operation == "-") return sum(a, {-b.value, b.error});
  if (operation == "*") return product(a, b);
  if (operation == "/") return quotient(a, b);
  if (operation == "%") return remainder(a, b);
  if (operation == "^") return power(a, b);
  throw InternalError(fmt::format("unknown operation '{}'", operation));
}

Result evaluated(const Term& term, const std::vector<Value>& values);

Number evaluated_number(const Term& term, const std::vector<Value>& values) {
  return number_of(evaluated(term, values));
}

Number evaluated_operation(const Term& term, const std::vector<Value>& values) {
  const auto operand = [&](size_t i) { return evaluated_number(term.operands[i], values); };
  const std::string& operation = term.operation;
  if (operation == "not") return truth(!is_true(operand(0)));
  if (operation == "negate") {
    const Number number = operand(0);
    return {-number.value, number.error};
  }
  if (operation == "and") return truth(is_true(operand(0)) && is_true(operand(1)));
  if (operation == "or") return truth(is_true(operand(0)) || is_true(operand(1)));
  if (operation == "==" || operation == "=" || operation == "!=") {
    const bool equal =
        is_equal(evaluated(term.operands[0], values), evaluated(term.operands[1], values));
    return truth(equal == (operation != "!="));
  }
  if (const Function* const function = find_function(operation)) {
    std::vector<Number> arguments;
    for (size_t i = 0; i < term.operands.size(); ++i) arguments.push_back(operand(i));
    return function->compute(arguments);
  }
  return computed(operation, operand(0), operand(1));
}

Result evaluated(const Term& term, const std::vector<Value>& values) {
  switch (term.kind) {
    case Term::Kind::kConstant: return result_of(term.constant);
    case Term::Kind::kName: return result_of(values.at(term.name));
    case Term::Kind::kOperation: return evaluated_operation(term, values);
  }
  return Number{};
}

}  // namespace

Expression::Expression(std::string_view text)
    : root_(std::make_shared<const Term>(Parser(text, names_).parse())) {}

Value Expression::evaluate(const std::vector<Value>& values) const {
  const Result result = evaluated(*root_, values);
  if (const Number* const number = std::get_if<Number>(&result)) return number->value;
  return std::get<std::string>(result);
}

bool Expression::holds(const std::vector<Value>& values) const {
  return number_of(evaluated(*root_, values)).value != 0;
}

}  // namespace gallop::config
