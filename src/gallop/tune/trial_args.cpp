#include "gallop/tune/trial_args.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/tune/value_word.h"
#include "gallop/tune/wandb.h"

namespace gallop::tune {

namespace {

using Args = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kVariable = "${envvar:";
constexpr const char* kArguments = "${args_json}";
constexpr const char* kArgumentsFile = "${args_json_file}";

/// A part of an argument: a text, or the value of the environment variable of this name.
struct Piece {
  std::string text;
  bool is_variable = false;
};
using Pieces = std::vector<Piece>;

Pieces literal(std::string text) { return {Piece{std::move(text)}}; }

std::string value_of(const Piece& piece) {
  if (!piece.is_variable) return piece.text;
  const char* const value = std::getenv(piece.text.c_str());
  if (value != nullptr) return value;
  throw UsageError(
      fmt::format("command: environment variable '{}' is not set", printable(piece.text)));
}

// As a part of a word of a POSIX shell.
std::string shell_text(const Piece& piece) {
  if (!piece.is_variable) return piece.text.empty() ? "" : shell_word(piece.text);
  const auto is_digit = [](unsigned char letter) { return std::isdigit(letter) != 0; };
  const auto is_letter = [](unsigned char letter) { return letter == '_' || std::isalnum(letter); };
  const std::string& name = piece.text;
  const bool is_parameter = !name.empty() && !is_digit(static_cast<unsigned char>(name[0])) &&
                            std::all_of(name.begin(), name.end(), is_letter);
  return is_parameter ? fmt::format("\"${{{}}}\"", name)
                      : fmt::format("\"$(printenv {})\"", shell_word(name));
}

std::string shell_word_of(const Pieces& pieces) {
  std::string word;
  for (const Piece& piece : pieces) word += shell_text(piece);
  return word.empty() ? shell_word("") : word;
}

// Substitutes values for `{name}`; "{{" is a literal brace. With `keeps_braces`, those without a
// parameter's name are kept, including doubled ones, as W&B does.
Pieces filled(const std::string& word, const Args& values, const Space& space, bool keeps_braces) {
  Pieces pieces(1);
  for (size_t i = 0; i < word.size(); ++i) {
    std::string& text = pieces.back().text;
    const bool is_doubled = word.compare(i, 2, "{{") == 0 || word.compare(i, 2, "}}") == 0;
    if (is_doubled && !keeps_braces) {
      text += word[i++];
      continue;
    }
    if (const size_t close = word.find('}', i);
        word.compare(i, kVariable.size(), kVariable) == 0 && close != std::string::npos) {
      const size_t name_at = i + kVariable.size();
      pieces.push_back({word.substr(name_at, close - name_at), /*is_variable=*/true});
      pieces.emplace_back();
      i = close;
      continue;
    }
    const size_t end = word[i] == '{' ? word.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      text += word[i];
      continue;
    }
    const std::string name = word.substr(i + 1, end - i - 1);
    if (!space.find(name)) {
      if (keeps_braces) {
        text += word[i];
        continue;
      }
      throw UsageError(fmt::format(
          "command: '{}' is not a parameter; write {{{{ for a literal brace", printable(word)));
    }
    for (const auto& [known, value] : values) {
      if (known == name) text += value;
    }
    i = end;
  }
  return pieces;
}

// A parameter's value as an argument of a command.
struct Argument {
  std::string name, text;
  std::optional<bool> truth{};
};

// For W&B commands, arguments are formatted by its agent's rules: as Python values, nested in one
// map.
std::vector<Argument> arguments_of(const RunSpec& spec, const Space& space, const Point& point) {
  std::vector<Argument> arguments;
  if (!spec.python_words) {
    for (auto& [name, text] : parameter_args(space, point)) {
      const bool is_true = text == "true" || text == "True";
      const bool is_truth = is_true || text == "false" || text == "False";
      arguments.push_back({name, text, is_truth ? std::optional(is_true) : std::nullopt});
    }
    return arguments;
  }
  const auto values = python_values(space, point, spec.nested);
  for (const auto& [name, value] : values.items()) {
    arguments.push_back({name, python_text(value)});
    if (value.is_boolean()) arguments.back().truth = value.get<bool>();
  }
  return arguments;
}

// A macro that expands to one or two arguments per parameter.
struct Macro {
  const char* name = nullptr;
  const char* before = nullptr;  ///< Prefix of the parameter's name.
  bool drops_false = false;
  bool splits = false;
};

constexpr std::array kMacros = {
    Macro{"${args}", "--"},
    Macro{"${args_no_hyphens}", ""},
    Macro{"${args_no_boolean_flags}", "--", /*drops_false=*/true},
    Macro{"${args_no_equals}", "--", /*drops_false=*/false, /*splits=*/true},
    Macro{"${args_append_hydra}", "+"},
    Macro{"${args_override_hydra}", "++"},
};

const Macro* macro_of(const std::string& word) {
  const auto* const found = std::find_if(kMacros.begin(), kMacros.end(),
                                         [&](const Macro& macro) { return word == macro.name; });
  return found != kMacros.end() ? found : nullptr;
}

std::vector<std::string> words_of(const Macro& macro, const std::vector<Argument>& arguments) {
  std::vector<std::string> args;
  for (const auto& [name, text, truth] : arguments) {
    const bool is_flag = macro.drops_false && truth;
    if (is_flag && !*truth) continue;
    const std::string word = macro.before + name;
    args.push_back(is_flag || macro.splits ? word : fmt::format("{}={}", word, text));
    if (macro.splits) args.push_back(text);
  }
  return args;
}

// The arguments of a command.
std::vector<Pieces> command_pieces(const RunSpec& spec, const Space& space, const Point& point,
                                   const std::string& folder) {
  const std::vector<Argument> arguments = arguments_of(spec, space, point);
  Args values = parameter_args(space, point);
  for (auto& [name, value] : values) {
    if (!spec.python_words) break;
    const size_t index = *space.find(name);
    value = python_text(python_value(space, index, point[index]));
  }
  std::vector<Pieces> args;
  for (const std::string& word : spec.command) {
    if (const Macro* const macro = macro_of(word)) {
      for (std::string& arg : words_of(*macro, arguments)) args.push_back(literal(std::move(arg)));
    } else if (word == kArguments) {
      args.push_back(literal(arguments_json(spec, space, point)));
    } else if (word == kArgumentsFile) {
      args.push_back(literal(arguments_file(folder)));
    } else {
      args.push_back(filled(word, values, space, spec.python_words));
    }
  }
  return args;
}

}  // namespace

Args parameter_args(const Space& space, const Point& point) {
  Args args;
  for (size_t i = 0; i < space.size(); ++i) {
    if (std::isnan(point[i])) continue;
    args.emplace_back(space[i].name, value_word(space, i, point[i]));
  }
  return args;
}

std::string parameters_json(const Space& space, const Point& point) {
  return nested_values(space, point, {}).dump();
}

std::string arguments_json(const RunSpec& spec, const Space& space, const Point& point) {
  return spec.python_words ? python_json(python_values(space, point, spec.nested))
                           : nested_values(space, point, spec.nested).dump();
}

std::vector<std::string> recipe_options(const RunSpec& spec, const Space& space,
                                        const Point& point) {
  std::vector<std::string> args;
  for (const auto& [name, value] : spec.options) args.push_back(fmt::format("{}={}", name, value));
  for (const auto& [name, value] : parameter_args(space, point)) {
    args.push_back(fmt::format("{}={}", name, value));
  }
  return args;
}

std::vector<std::string> command_args(const RunSpec& spec, const Space& space, const Point& point,
                                      const std::string& folder) {
  std::vector<std::string> args;
  for (const Pieces& pieces : command_pieces(spec, space, point, folder)) {
    std::string& arg = args.emplace_back();
    for (const Piece& piece : pieces) arg += value_of(piece);
  }
  return args;
}

std::string command_line(const RunSpec& spec, const Space& space, const Point& point,
                         const std::string& folder) {
  std::string line;
  for (const Pieces& pieces : command_pieces(spec, space, point, folder)) {
    line += (line.empty() ? "" : " ") + shell_word_of(pieces);
  }
  return line;
}

std::string wrong_macro(const std::string& word) {
  const bool is_macro = word.starts_with("${") && word.find('}') + 1 == word.size();
  if (!is_macro || word.starts_with(kVariable)) return {};
  std::vector<std::string> known = {kArguments, kArgumentsFile};
  for (const Macro& macro : kMacros) known.emplace_back(macro.name);
  if (std::find(known.begin(), known.end(), word) != known.end()) return {};
  known.insert(known.begin(), {"${env}", "${interpreter}", "${program}"});
  known.emplace_back("${envvar:NAME}");
  return fmt::format("unknown macro '{}'; known are {}", printable(word), join_names(known, "and"));
}

bool wants_arguments_file(const RunSpec& spec) {
  return std::find(spec.command.begin(), spec.command.end(), kArgumentsFile) != spec.command.end();
}

std::string arguments_file(const std::string& folder) { return folder + ".json"; }

std::string line_to_repeat(const Study& study, const Trial& trial) {
  const RunSpec spec = parse_run_spec(study.settings().run);
  if (spec.recipe.empty()) return command_line(spec, study.space(), trial.point, trial.folder);
  std::vector<std::string> args = {"gallop", "train", spec.recipe};
  for (auto& option : recipe_options(spec, study.space(), trial.point)) {
    args.push_back(std::move(option));
  }
  return shell_line(args);
}

}  // namespace gallop::tune
