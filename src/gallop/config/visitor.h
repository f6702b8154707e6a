#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gallop::config {

class Component;
class ComponentList;

/// Describes an option: its key, one line of help, and allowed values.
struct Field {
  const char* name;
  const char* help;
  std::optional<double> min{};
  std::optional<double> max{};
  bool above_min = false;  ///< `min` itself is excluded.
  bool below_max = false;  ///< `max` itself is excluded.
  /// A number may be "auto": it has its default until it is resolved.
  bool or_auto = false;
  /// A list may be written as its only item, without brackets.
  bool or_item = false;
  std::vector<std::string> choices{};  ///< Allowed values of a text option.
  /// A text is the path of a file. One that is read from a recipe file and relative is relative to
  /// the recipe's folder; "~/" is the home folder. The value becomes absolute.
  bool is_path = false;
  /// Validates a text, or an item of a list of texts: the error, or an empty text.
  std::function<std::string(const std::string&)> check{};
};

/// Walks over the options of a config struct. A struct `C` has one function
/// `void visit(Visitor&, C&)` that names each of its fields once; parsing, help, validation,
/// printing and JSON are visitors.
class Visitor {
 public:
  virtual ~Visitor() = default;

  virtual void field(const Field& field, bool& value) = 0;
  virtual void field(const Field& field, int64_t& value) = 0;
  virtual void field(const Field& field, double& value) = 0;
  virtual void field(const Field& field, std::string& value) = 0;
  virtual void field(const Field& field, std::vector<int64_t>& value) = 0;
  virtual void field(const Field& field, std::vector<double>& value) = 0;
  virtual void field(const Field& field, std::vector<std::string>& value) = 0;
  /// A value, or "none" for nothing.
  virtual void field(const Field& field, std::optional<int64_t>& value) = 0;
  virtual void field(const Field& field, std::optional<double>& value) = 0;

  /// A named member of a plug-in family. Its name is under `field.name`, with its options beside it
  /// in the same map: `model: {name: resnet, depth: 20}`.
  virtual void field(const Field& field, Component& value) = 0;
  /// A list of members of one family, each `- name: {options}`.
  virtual void field(const Field& field, ComponentList& value) = 0;

  /// A list of maps, each a struct that has a `visit` function.
  template <typename C>
  void list(const Field& field, std::vector<C>& configs) {
    nested_list(field, {.resize = [&configs](size_t size) { configs.resize(size); },
                        .size = [&configs] { return configs.size(); },
                        .visit_item = [&configs](size_t i,
                                                 Visitor& visitor) { visit(visitor, configs[i]); },
                        .visit_sample =
                            [](Visitor& visitor) {
                              C sample;
                              visit(visitor, sample);
                            }});
  }

  /// A nested struct with a `visit` function.
  template <typename C>
  void section(const Field& field, C& config) {
    nested(field, [&config](Visitor& visitor) { visit(visitor, config); });
  }

 protected:
  struct ListAccess {
    std::function<void(size_t)> resize;
    std::function<size_t()> size;
    std::function<void(size_t, Visitor&)> visit_item;
    std::function<void(Visitor&)> visit_sample;  ///< An item that belongs to no list.
  };
  virtual void nested_list(const Field& field, const ListAccess& list) = 0;
  virtual void nested(const Field& field, const std::function<void(Visitor&)>& visit_fields) = 0;
};

}  // namespace gallop::config
