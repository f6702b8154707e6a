#pragma once

#include <cstdint>

#include <torch/headeronly/version.h>

#include "gallop/app/plugin_abi.h"
#include "gallop/app/registries.h"

namespace gallop {

/// What the symbol `gallop_plugin` of a plug-in is: a shared library that adds components to those
/// of the program; see docs/plugins.md.
struct PluginDescriptor {
  uint32_t magic;
  const char* abi;  ///< What it was built with; the program takes no other.
  const char* name;
  void (*register_components)(Registries& registries);
};

inline constexpr uint32_t kPluginMagic = 0x31504C47;  // "GLP1"

}  // namespace gallop

#define GALLOP_TEXT_OF(value) #value
#define GALLOP_TEXT(value) GALLOP_TEXT_OF(value)

#if defined(__clang__)
#define GALLOP_COMPILER "clang " GALLOP_TEXT(__clang_major__)
#else
#define GALLOP_COMPILER "g++ " GALLOP_TEXT(__GNUC__)
#endif

#if defined(__SANITIZE_ADDRESS__)
#define GALLOP_SANITIZER ", address sanitizer"
#elif defined(__SANITIZE_THREAD__)
#define GALLOP_SANITIZER ", thread sanitizer"
#else
#define GALLOP_SANITIZER ""
#endif

/// By which a plug-in's file is recognized before anything of it runs.
#define GALLOP_PLUGIN_MARK "gallop plug-in: "

/// All that must be the same in a plug-in and the program: Gallop with its headers (plugin_abi.h is
/// made when Gallop is built), LibTorch, the compiler, and the language.
#define GALLOP_PLUGIN_ABI                                                            \
  GALLOP_PLUGIN_MARK GALLOP_HEADERS ", LibTorch " TORCH_VERSION ", " GALLOP_COMPILER \
                                    ", C++ " GALLOP_TEXT(__cplusplus) GALLOP_SANITIZER

/// Makes a shared library a plug-in, once in one of its sources: `function` adds its components,
///
///     void register_components(gallop::Registries& registries) {
///       registries.losses.add("mine", "my loss", make_my_loss);
///     }
///     GALLOP_PLUGIN("mine", register_components)
#define GALLOP_PLUGIN(plugin_name, function)                                                    \
  extern "C" {                                                                                  \
  extern __attribute__((visibility("default"))) const ::gallop::PluginDescriptor gallop_plugin; \
  const ::gallop::PluginDescriptor gallop_plugin = {::gallop::kPluginMagic, GALLOP_PLUGIN_ABI,  \
                                                    plugin_name, function};                     \
  }
