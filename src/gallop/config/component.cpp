#include "gallop/config/component.h"

namespace gallop::config {

const Catalog::Member* Catalog::find(const std::string& name) const {
  for (const auto& member : members()) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

std::vector<std::string> Catalog::names() const {
  std::vector<std::string> names;
  for (const auto& member : members()) names.push_back(member.name);
  return names;
}

Component::Component(const Catalog& catalog, const std::string& name)
    : catalog_(&catalog), name_(name) {
  const auto* member = catalog.find(name);
  if (member == nullptr) {
    throw InternalError(std::string("no ") + catalog.family() + " named '" + name + "'");
  }
  options_ = member->make_options(catalog);
}

Component::Component(const Component& other)
    : catalog_(other.catalog_), name_(other.name_), options_(other.options_->clone()) {}

Component& Component::operator=(const Component& other) {
  *this = Component(other);
  return *this;
}

}  // namespace gallop::config
