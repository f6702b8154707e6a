#include "gallop/ui/api/origins.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/config/node.h"
#include "gallop/config/renamed_options.h"

namespace gallop::ui::api {

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 24;
constexpr std::string_view kComment = "  # ";
// Marks options that a later session of the run changed.
constexpr std::string_view kLater = "on the command line:";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

void add(const config::Node& node, const std::string& path,
         const std::vector<std::string_view>& lines, std::map<std::string, std::string>& origins) {
  for (const auto& entry : node.entries) {
    const std::string name = path.empty() ? entry.key : path + "." + entry.key;
    if (entry.value.kind == config::Node::Kind::kMap) {
      add(entry.value, name, lines, origins);
      continue;
    }
    const auto number = static_cast<size_t>(entry.origin.line);
    if (number == 0 || number > lines.size()) continue;
    const std::string_view line = lines[number - 1];
    const size_t comment = line.rfind(kComment);
    if (comment != std::string_view::npos) origins[name] = line.substr(comment + kComment.size());
  }
}

void add_later(std::string_view line, std::map<std::string, std::string>& origins) {
  const size_t words = line.find(kLater);
  if (!line.starts_with('#') || words == std::string_view::npos) return;
  for (std::string_view rest = line.substr(words + kLater.size()); !rest.empty();) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view word = rest.substr(0, rest.find(' '));
    const auto option =
        origins.find(config::current_path(std::string(word.substr(0, word.find('=')))));
    if (option != origins.end()) option->second = "command line, later";
    rest.remove_prefix(word.size());
  }
}

}  // namespace

std::map<std::string, std::string> read_origins(const fs::path& run) {
  const fs::path path = run / "origins.yaml";
  std::map<std::string, std::string> origins;
  std::error_code error;
  if (!fs::exists(path, error)) return origins;
  try {
    const std::string text = read_file(path, kMostBytes);
    const auto lines = lines_of(text);
    config::Node recipe = config::parse_yaml(text, path.string());
    config::Problems problems;
    config::rename_old_options(recipe, problems);
    add(recipe, "", lines, origins);
    for (const std::string_view line : lines) add_later(line, origins);
  } catch (const Error&) {
    origins.clear();
  }
  return origins;
}

}  // namespace gallop::ui::api
