#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gallop::config {

class Component;
class ComponentList;

/// Describes one option: its key, one line of help, and what is allowed.
struct Field {
  const char* name;
  const char* help;
  std::optional<double> min{};
  std::optional<double> max{};
  bool above_min = false;  ///< `min` itself is not allowed.
  bool below_max = false;  ///< `max` itself is not allowed.
  /// A number may be "auto": it stands at its default until what is written is resolved.
  bool or_auto = false;
  std::vector<std::string> choices{};  ///< Allowed words, for text options.
  /// Says what is wrong with a text or an item of a list of texts, or nothing.
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
  /// Written as a value, or "none" for nothing.
  virtual void field(const Field& field, std::optional<int64_t>& value) = 0;
  virtual void field(const Field& field, std::optional<double>& value) = 0;

  /// A named member of a plug-in family. Its name stands under `field.name` and its options beside
  /// it in the same map: `model: {name: resnet, depth: 20}`.
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

  /// A map of its own, for a nested struct that has a `visit` function.
  template <typename C>
  void section(const Field& field, C& config) {
    nested(field, [&config](Visitor& visitor) { visit(visitor, config); });
  }

 protected:
  struct ListAccess {
    std::function<void(size_t)> resize;
    std::function<size_t()> size;
    std::function<void(size_t, Visitor&)> visit_item;
    std::function<void(Visitor&)> visit_sample;  ///< An item of no list.
  };
  virtual void nested_list(const Field& field, const ListAccess& list) = 0;
  virtual void nested(const Field& field, const std::function<void(Visitor&)>& visit_fields) = 0;
};

}  // namespace gallop::config
