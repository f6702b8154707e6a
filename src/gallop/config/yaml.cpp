#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/node.h"

namespace gallop::config {

namespace {

constexpr size_t kMaxDepth = 32;

// Builds nodes from the parser's events. yaml-cpp's own tree silently keeps one of two duplicate
// keys.
class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string file, Origin::Source source) : file_(std::move(file)), source_(source) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    Node node;
    node.origin = at(mark);
    add(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    fail(mark, "aliases (*name) are not allowed in a recipe; repeat the value");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    Node node = Node::make_scalar(value, at(mark));
    node.quoted = tag == "!";  // yaml-cpp's tag for quoted text
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, Node::Kind::kList);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, Node::Kind::kMap);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    Node node;
    bool has_key = false;
    std::string key;
    Origin key_origin;
  };

  Origin at(const YAML::Mark& mark) const {
    return {source_, file_, mark.line + 1, mark.column + 1};
  }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw UsageError(fmt::format("{}: {}", printable(at(mark).describe()), message));
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) fail(mark, "anchors (&name) are not allowed in a recipe; repeat the value");
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, Node::Kind kind) {
    refuse_anchor(mark, anchor);
    if (levels_.size() == kMaxDepth) fail(mark, fmt::format("nested deeper than {}", kMaxDepth));
    Level level;
    level.node.kind = kind;
    level.node.origin = at(mark);
    levels_.push_back(std::move(level));
  }

  void close() {
    Node node = std::move(levels_.back().node);
    levels_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == Node::Kind::kList) {
      level.node.items.push_back(std::move(node));
    } else if (!level.has_key) {
      take_key(level, node);
    } else {
      level.node.entries.push_back({std::move(level.key), level.key_origin, std::move(node)});
      level.has_key = false;
    }
  }

  void take_key(Level& level, const Node& node) {
    const Origin& origin = node.origin;
    if (node.kind != Node::Kind::kScalar) {
      throw UsageError(fmt::format("{}: a key must be plain text", printable(origin.describe())));
    }
    if (level.node.find(node.scalar) != nullptr) {
      throw UsageError(fmt::format("{}: {}: duplicate key", printable(origin.describe()),
                                   printable(node.scalar)));
    }
    level.has_key = true;
    level.key = node.scalar;
    level.key_origin = origin;
  }

  std::string file_;
  Origin::Source source_;
  std::vector<Level> levels_;
  Node root_;
};

Node parse(const std::string& text, const std::string& file_name, Origin::Source source) {
  std::istringstream stream(text);
  Builder builder(file_name, source);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Node();
    Builder rest(file_name, source);
    if (parser.HandleNextDocument(rest)) {
      throw UsageError(fmt::format("{}: more than one document", printable(file_name)));
    }
  } catch (const YAML::Exception& error) {
    const Origin origin{source, file_name, error.mark.line + 1, error.mark.column + 1};
    throw UsageError(fmt::format("{}: {}", printable(origin.describe()), error.msg));
  }
  return builder.take();
}

bool is_plain(const Node& node) {
  return node.kind == Node::Kind::kScalar || node.kind == Node::Kind::kNull;
}

bool is_control(char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f; }

bool needs_quotes(const std::string& text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ') return true;
  if (text.find_first_of(":#{}[],&*!|>'\"%@`\\") != std::string::npos) return true;
  if (std::any_of(text.begin(), text.end(), is_control)) return true;
  const bool indicator = text.front() == '-' || text.front() == '?';
  return text == "null" || text == "~" || (indicator && (text.size() == 1 || text[1] == ' '));
}

std::string in_quotes(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (is_control(c)) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string yaml_key(const std::string& key) { return needs_quotes(key) ? in_quotes(key) : key; }

std::string yaml_scalar(const Node& node) {
  if (node.kind == Node::Kind::kNull) return "null";
  return node.quoted || needs_quotes(node.scalar) ? in_quotes(node.scalar) : node.scalar;
}

std::string flow(const Node& node) {
  std::string text;
  if (node.kind == Node::Kind::kList) {
    for (const auto& item : node.items) text += (text.empty() ? "" : ", ") + flow(item);
    return "[" + text + "]";
  }
  if (node.kind == Node::Kind::kMap) {
    for (const auto& entry : node.entries) {
      text += (text.empty() ? "" : ", ") + yaml_key(entry.key) + ": " + flow(entry.value);
    }
    return "{" + text + "}";
  }
  return yaml_scalar(node);
}

struct Line {
  std::string text;
  const Origin* origin;
};

void write_block(const Node& map, int indent, std::vector<Line>& lines) {
  for (const auto& entry : map.entries) {
    const std::string head =
        std::string(static_cast<size_t>(indent), ' ') + yaml_key(entry.key) + ":";
    if (entry.value.kind == Node::Kind::kMap && !entry.value.entries.empty()) {
      lines.push_back({head, nullptr});
      write_block(entry.value, indent + 2, lines);
    } else {
      lines.push_back({head + " " + flow(entry.value), &entry.value.origin});
    }
  }
}

}  // namespace

Node parse_yaml(const std::string& text, const std::string& file_name) {
  return parse(text, file_name, Origin::Source::kFile);
}

Node parse_override_value(const std::string& text, const std::string& key) {
  // Quotes empty values and single words that YAML would parse as structure.
  if (text.empty()) {
    Node node = Node::make_scalar("", {Origin::Source::kCommandLine, key, 1, 1});
    node.quoted = true;
    return node;
  }
  Node node = parse(text, key, Origin::Source::kCommandLine);
  node.origin.source = Origin::Source::kCommandLine;
  return node;
}

std::string to_yaml(const Node& node, bool show_origins) {
  if (is_plain(node) || node.kind == Node::Kind::kList) return flow(node) + "\n";
  std::vector<Line> lines;
  write_block(node, 0, lines);
  size_t width = 0;
  for (const auto& line : lines) {
    if (line.text.size() <= 60) width = std::max(width, line.text.size());
  }
  std::string text;
  for (const auto& line : lines) {
    text += line.text;
    if (show_origins && line.origin != nullptr) {
      text += std::string(line.text.size() < width ? width - line.text.size() : 0, ' ') + "  # " +
              printable(line.origin->describe());
    }
    text += '\n';
  }
  return text;
}

}  // namespace gallop::config
