#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/model/exported/tensor_meta.h"

namespace gallop::model::exported {

namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxText = 1 << 16;

enum Binding { kSum, kProduct, kPower, kAtom };

struct Formula {
  std::string text;
  Binding binding = kAtom;
};

// A recursive descent over NAME(ARGUMENT, ...), where an argument is a call, a number, a quoted
// text or KEY=VALUE.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::optional<Formula> parse() {
    auto formula = expression(0);
    return rest_.empty() ? formula : std::nullopt;
  }

 private:
  bool take(char letter) {
    if (!rest_.starts_with(letter)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string word() {
    const size_t end = std::min(rest_.find_first_of("(),='\" "), rest_.size());
    std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }

  std::optional<std::string> quoted() {
    const char quote = rest_.front();
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<Formula> expression(int depth) {
    if (depth > kMaxDepth || rest_.empty()) return std::nullopt;
    if (rest_.front() == '\'' || rest_.front() == '"') {
      auto text = quoted();
      if (!text) return std::nullopt;
      return Formula{.text = std::move(*text)};
    }
    std::string name = word();
    if (name.empty()) return std::nullopt;
    if (!take('(')) return Formula{.text = std::move(name)};
    std::vector<Formula> arguments;
    while (!take(')')) {
      if (!arguments.empty() && !(take(',') && take(' '))) return std::nullopt;
      auto argument = expression(depth + 1);
      if (!argument) return std::nullopt;
      if (take('=')) {  // An assumption about a symbol, such as positive=True.
        if (!expression(depth + 1)) return std::nullopt;
        if (arguments.empty()) return std::nullopt;
        continue;
      }
      arguments.push_back(std::move(*argument));
    }
    return call(name, arguments);
  }

  static std::string joined(const std::vector<Formula>& parts, const char* separator,
                            Binding binding) {
    std::string text;
    for (const Formula& part : parts) {
      if (!text.empty()) text += separator;
      text += part.binding < binding ? "(" + part.text + ")" : part.text;
    }
    return text;
  }

  static Formula call(const std::string& name, const std::vector<Formula>& arguments) {
    if ((name == "Symbol" || name == "Integer") && arguments.size() == 1) return arguments[0];
    if (name == "Add") return {.text = joined(arguments, " + ", kSum), .binding = kSum};
    if (name == "Mul") return {.text = joined(arguments, "*", kProduct), .binding = kProduct};
    if (name == "Pow") return {.text = joined(arguments, "**", kAtom), .binding = kPower};
    return {.text = fmt::format("{}({})", name, joined(arguments, ", ", kSum))};
  }

  std::string_view rest_;
};

}  // namespace

std::string sympy_formula(const std::string& srepr) {
  if (srepr.size() > kMaxText) return printable(srepr.substr(0, kMaxText));
  const auto formula = Parser(srepr).parse();
  return printable(formula ? formula->text : srepr);
}

}  // namespace gallop::model::exported
