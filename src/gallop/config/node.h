#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gallop::config {

/// The origin of a value.
struct Origin {
  enum class Source { kDefault, kFile, kCommandLine, kMeasured };
  Source source = Source::kDefault;
  std::string file;
  int line = 0;    ///< From 1.
  int column = 0;  ///< From 1.

  /// "file:line:column", "command line", "default" or "measured".
  std::string describe() const;
};

/// A node of parsed configuration: a scalar's text, a list or a map, each with its origin. The type
/// of a scalar is determined by the option that reads it.
struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  std::string scalar;
  bool quoted = false;  ///< Written in quotes: never a number, a boolean or null.
  std::vector<Node> items;
  std::vector<Entry> entries;  ///< In file order; keys are unique.
  Origin origin;

  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  /// The value at `key`, added as null if missing. Turns a null node into a map.
  Node& at_or_add(std::string_view key, const Origin& origin);

  static Node make_scalar(std::string text, Origin origin = {});
};

struct Node::Entry {
  std::string key;
  Origin origin;
  Node value;
};

/// One mistake in a recipe or on the command line.
struct Problem {
  Origin origin;
  std::string key;  ///< Full path, "optimizer.lr"; empty if there is none.
  std::string message;
};

/// Collects mistakes, so that all of them are reported at once.
class Problems {
 public:
  void add(const Origin& origin, std::string key, std::string message);
  bool empty() const { return problems_.empty(); }
  const std::vector<Problem>& list() const { return problems_; }
  /// Throws one UsageError with a line per mistake, if there is any.
  void throw_if_any() const;

 private:
  std::vector<Problem> problems_;
};

/// Parses a single YAML document. Rejects, with the position: syntax errors, duplicate keys,
/// anchors and aliases, keys that are not plain text, nesting deeper than 32. Throws UsageError.
Node parse_yaml(const std::string& text, const std::string& file_name);

/// Parses the value of an override as YAML, so that `augment=[{flip: {}}]` works.
Node parse_override_value(const std::string& text, const std::string& key);

/// Sets `path` ("optimizer.lr"; list items by index, "augment.0.flip.p") to `value`. Adds missing
/// maps. Records a problem if the path leads through a scalar.
void apply_override(Node& root, const std::string& path, Node value, Problems& problems);

/// Serializes a node as YAML in block style, small maps and lists in flow style. With
/// `show_origins`, every line ends with a comment with the value's origin.
std::string to_yaml(const Node& node, bool show_origins);

/// Serializes a node as JSON; unquoted scalars that parse as numbers, booleans or null become such.
std::string to_json(const Node& node);

}  // namespace gallop::config
