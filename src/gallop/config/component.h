#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/config/visitor.h"

namespace gallop::config {

/// Type-erased options of a member of a plug-in family.
class Options {
 public:
  virtual ~Options() = default;
  virtual void visit_fields(Visitor& visitor) = 0;
  virtual std::unique_ptr<Options> clone() const = 0;
};

/// Type-erased options for a config struct with a `visit` function.
template <typename C>
class OptionsOf final : public Options {
 public:
  explicit OptionsOf(C config_) : config(std::move(config_)) {}
  void visit_fields(Visitor& visitor) override { visit(visitor, config); }
  std::unique_ptr<Options> clone() const override { return std::make_unique<OptionsOf>(*this); }
  C config;
};

/// The names of a family with their options, without factories.
class Catalog {
 public:
  struct Member {
    std::string name;
    std::string help;  ///< One line.
    std::unique_ptr<Options> (*make_options)(const Catalog& catalog);
    std::string origin{};  ///< Who registered it, "the plug-in /home/me/libmine.so".
  };

  virtual ~Catalog() = default;
  /// The family's name in messages, "optimizer".
  virtual const char* family() const = 0;
  virtual const std::vector<Member>& members() const = 0;

  const Member* find(const std::string& name) const;
  std::vector<std::string> names() const;
};

/// A selected member of a family with its options. Copies are deep.
class Component {
 public:
  /// Selects `name`; throws InternalError if the family has no such member.
  Component(const Catalog& catalog, const std::string& name);
  Component(const Component& other);
  Component& operator=(const Component& other);
  Component(Component&&) noexcept = default;
  Component& operator=(Component&&) noexcept = default;
  ~Component() = default;

  const Catalog& catalog() const { return *catalog_; }
  const std::string& name() const { return name_; }
  Options& options() { return *options_; }
  const Options& options() const { return *options_; }
  void visit_fields(Visitor& visitor) { options_->visit_fields(visitor); }

 private:
  const Catalog* catalog_;
  std::string name_;
  std::unique_ptr<Options> options_;
};

/// A list of selected members of one family.
class ComponentList {
 public:
  explicit ComponentList(const Catalog& catalog) : catalog_(&catalog) {}
  const Catalog& catalog() const { return *catalog_; }
  std::vector<Component> items;

 private:
  const Catalog* catalog_;
};

/// A plug-in family: a registry from names to options and to factories that create a `T` from them
/// and `Args`. A config that contains members of a family has a constructor from the family's
/// catalog. Each family has one registry, in its registry.cpp, with one line per entry:
///
///     registry.add<SgdConfig>("sgd", "stochastic gradient descent", make_sgd);
template <typename T, typename... Args>
class Registry : public Catalog {
 public:
  explicit Registry(const char* family) : family_(family) {}

  const char* family() const override { return family_; }
  const std::vector<Member>& members() const override { return members_; }

  template <typename C>
  Registry& add(const char* name, const char* help,
                std::unique_ptr<T> (*function)(const C&, Args...)) {
    return add_function<C>(name, help, function);
  }

  /// As add(), for a stateful factory.
  template <typename C>
  Registry& add_function(const char* name, const char* help,
                         std::function<std::unique_ptr<T>(const C&, Args...)> function) {
    if (const Member* const other = find(name)) {
      throw UsageError(std::string(family_) + " '" + name + "' is registered twice: by " +
                       other->origin + " and by " + origin_ + "; one of them needs another name");
    }
    members_.push_back({name, help, make_options<C>, origin_});
    builders_.push_back([function = std::move(function)](const Options& options, Args... args) {
      return function(dynamic_cast<const OptionsOf<C>&>(options).config,
                      std::forward<Args>(args)...);
    });
    return *this;
  }

  /// Sets the origin of members that are registered from now on.
  void set_origin(const std::string& origin) { origin_ = origin; }

  /// Creates the selected member.
  std::unique_ptr<T> build(const Component& component, Args... args) const {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].name == component.name()) {
        return builders_[i](component.options(), std::forward<Args>(args)...);
      }
    }
    throw InternalError(std::string(family_) + " '" + component.name() + "' is not registered");
  }

 private:
  template <typename C>
  static std::unique_ptr<Options> make_options(const Catalog& catalog) {
    if constexpr (std::is_constructible_v<C, const Catalog&>) {
      return std::make_unique<OptionsOf<C>>(C(catalog));
    } else {
      return std::make_unique<OptionsOf<C>>(C());
    }
  }

  const char* family_;
  std::string origin_ = "Gallop";
  std::vector<Member> members_;
  std::vector<std::function<std::unique_ptr<T>(const Options&, Args...)>> builders_;
};

}  // namespace gallop::config
