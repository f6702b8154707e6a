#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/model/exported/schema_reader.h"

namespace gallop::model::exported {

namespace {

// Parses 'NAME", line 12, in forward\n    code'; empty if it is no frame.
std::optional<SourceLine> read_frame(std::string_view frame) {
  constexpr std::string_view kLine = "\", line ", kIn = ", in ";
  const size_t path_end = frame.find(kLine);
  if (path_end == std::string_view::npos) return std::nullopt;
  const std::string_view path = frame.substr(0, path_end);
  std::string_view rest = frame.substr(path_end + kLine.size());
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const auto line = parse_number<int64_t>(rest.substr(0, digits));
  if (path.empty() || !line) return std::nullopt;
  SourceLine source{.file = printable(path.substr(path.find_last_of("/\\") + 1)), .line = *line};
  rest.remove_prefix(digits);
  const size_t first_end = std::min(rest.find('\n'), rest.size());
  if (rest.starts_with(kIn)) {
    source.function = printable(rest.substr(kIn.size(), first_end - kIn.size()));
  }
  rest.remove_prefix(std::min(first_end + 1, rest.size()));
  std::string_view code = rest.substr(0, rest.find('\n'));
  code.remove_prefix(std::min(code.find_first_not_of(' '), code.size()));
  source.code = printable(code);
  return source;
}

// Whether a frame is in torch itself.
bool is_of_torch(std::string_view frame) {
  const std::string_view path = frame.substr(0, frame.find('"'));
  return path.starts_with("torch/") ||
         path.find("site-packages/torch/") != std::string_view::npos ||
         path.find("dist-packages/torch/") != std::string_view::npos;
}

}  // namespace

std::string SourceLine::text() const {
  if (file.empty()) return "";
  return function.empty() ? fmt::format("{}:{}", file, line)
                          : fmt::format("{}:{}, in {}", file, line, function);
}

SourceLine read_source_line(const std::string& stack_trace) {
  constexpr std::string_view kFile = "File \"";
  std::string_view rest = stack_trace;
  std::optional<SourceLine> last;
  for (;;) {
    const size_t at = rest.rfind(kFile);
    if (at == std::string_view::npos) return last.value_or(SourceLine{});
    const std::string_view frame = rest.substr(at + kFile.size());
    rest = rest.substr(0, at);
    if (frame.starts_with('<')) continue;  // Code that the tracer generated.
    const bool is_users = !is_of_torch(frame);
    auto source = is_users || !last ? read_frame(frame) : std::nullopt;
    if (source && is_users) return *source;
    if (source) last = std::move(source);
  }
}

std::vector<ModuleFrame> read_module_stack(const std::string& stack) {
  std::vector<ModuleFrame> frames;
  std::string_view rest = stack;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view entry = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t first = entry.find(','), last = entry.rfind(',');
    if (first == std::string_view::npos || first == last) continue;
    // The tracer's stand-in for nodes that belong to no module.
    if (entry.starts_with("_empty_nn_module_stack")) continue;
    std::string_view fqn = entry.substr(first + 1, last - first - 1);
    fqn = fqn.substr(0, fqn.find('@'));  // "net.0@1" is the second call of net.0.
    frames.push_back({.fqn = printable(fqn), .type = printable(entry.substr(last + 1))});
  }
  return frames;
}

}  // namespace gallop::model::exported
