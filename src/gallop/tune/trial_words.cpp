#include "gallop/tune/trial_words.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/tune/value_word.h"

namespace gallop::tune {

namespace {

using Words = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kVariable = "${envvar:";
constexpr const char* kArgumentsFile = "${args_json_file}";

// What stands at `${envvar:NAME}`; `end` is the closing brace.
std::string variable_at(const std::string& word, size_t begin, size_t end) {
  const size_t name_at = begin + kVariable.size();
  const std::string name = word.substr(name_at, end - name_at);
  const char* const value = std::getenv(name.c_str());
  if (value != nullptr) return value;
  throw UsageError(fmt::format("command: there is no environment variable '{}'", printable(name)));
}

// Puts values in the place of `{name}`; "{{" is a brace.
std::string filled(const std::string& word, const Words& values, const Space& space,
                   Variables variables) {
  std::string text;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word.compare(i, 2, "{{") == 0 || word.compare(i, 2, "}}") == 0) {
      text += word[i++];
      continue;
    }
    if (const size_t close = word.find('}', i);
        word.compare(i, kVariable.size(), kVariable) == 0 && close != std::string::npos) {
      text += variables == Variables::kFilled ? variable_at(word, i, close)
                                              : word.substr(i, close + 1 - i);
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
      throw UsageError(
          fmt::format("command: '{}' names no parameter; for a brace write {{{{", printable(word)));
    }
    for (const auto& [known, value] : values) {
      if (known == name) text += value;
    }
    i = end;
  }
  return text;
}

// YAML 1.1 also has them with a capital, as Python does.
bool is_true(const std::string& value) { return value == "true" || value == "True"; }
bool is_truth(const std::string& value) {
  return is_true(value) || value == "false" || value == "False";
}

// Not texts that read like booleans.
void make_booleans_python(const Space& space, const Point& point, Words& values) {
  for (auto& [name, value] : values) {
    const size_t index = *space.find(name);
    const std::string text = space.value_text(index, point[index]);
    if (text == "true" || text == "false") value[0] = text == "true" ? 'T' : 'F';
  }
}

}  // namespace

Words parameter_words(const Space& space, const Point& point) {
  Words words;
  for (size_t i = 0; i < space.size(); ++i) {
    if (std::isnan(point[i])) continue;
    words.emplace_back(space[i].name, value_word(space, i, point[i]));
  }
  return words;
}

std::string parameters_json(const Space& space, const Point& point) {
  auto json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < space.size(); ++i) {
    if (std::isnan(point[i])) continue;
    json[space[i].name] = nlohmann::ordered_json::parse(space.value_text(i, point[i]));
  }
  return json.dump();
}

std::vector<std::string> recipe_options(const RunSpec& spec, const Space& space,
                                        const Point& point) {
  std::vector<std::string> words;
  for (const auto& [name, value] : spec.options) words.push_back(fmt::format("{}={}", name, value));
  for (const auto& [name, value] : parameter_words(space, point)) {
    words.push_back(fmt::format("{}={}", name, value));
  }
  return words;
}

std::vector<std::string> command_words(const RunSpec& spec, const Space& space, const Point& point,
                                       const std::string& folder, Variables variables) {
  Words values = parameter_words(space, point);
  if (spec.python_words) make_booleans_python(space, point, values);
  std::vector<std::string> words;
  for (const std::string& word : spec.command) {
    if (word == "${args}" || word == "${args_no_hyphens}" || word == "${args_no_boolean_flags}") {
      for (const auto& [name, value] : values) {
        const bool is_flag = word == "${args_no_boolean_flags}" && is_truth(value);
        if (is_flag && !is_true(value)) continue;
        words.push_back(fmt::format("{}{}{}", word == "${args_no_hyphens}" ? "" : "--", name,
                                    is_flag ? "" : "=" + value));
      }
    } else if (word == "${args_json}") {
      words.push_back(parameters_json(space, point));
    } else if (word == kArgumentsFile) {
      words.push_back(arguments_file(folder));
    } else {
      words.push_back(filled(word, values, space, variables));
    }
  }
  return words;
}

bool wants_arguments_file(const RunSpec& spec) {
  return std::find(spec.command.begin(), spec.command.end(), kArgumentsFile) != spec.command.end();
}

std::string arguments_file(const std::string& folder) { return folder + ".json"; }

std::vector<std::string> words_to_repeat(const Study& study, const Trial& trial) {
  const RunSpec spec = parse_run_spec(study.settings().run);
  if (spec.recipe.empty())
    return command_words(spec, study.space(), trial.point, trial.folder, Variables::kNamed);
  std::vector<std::string> words = {"gallop", "train", spec.recipe};
  for (auto& option : recipe_options(spec, study.space(), trial.point)) {
    words.push_back(std::move(option));
  }
  return words;
}

}  // namespace gallop::tune
