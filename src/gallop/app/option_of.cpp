#include "gallop/app/option_of.h"

#include "gallop/config/resolve.h"
#include "gallop/config/scalar.h"

namespace gallop::app {

std::optional<double> option_of(config::Component component, const char* name) {
  const config::Node options =
      config::write_fields([&](config::Visitor& visitor) { component.visit_fields(visitor); }, {});
  const config::Node* option = options.find(name);
  return option != nullptr ? config::as_number(*option) : std::nullopt;
}

}  // namespace gallop::app
