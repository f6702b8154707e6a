// The same components in a separate program, with all commands of Gallop.
#include <utility>

#include "gallop/app/cli.h"
#include "gallop/app/registries.h"

namespace mine {
void register_components(gallop::Registries& registries);
}

int main(int argc, char** argv) {
  gallop::Registries registries;
  mine::register_components(registries);
  return gallop::cli::run(argc, argv, std::move(registries));
}
