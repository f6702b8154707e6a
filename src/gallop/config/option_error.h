#pragma once

#include <string>
#include <utility>

#include "gallop/base/error.h"
#include "gallop/config/node.h"

namespace gallop::config {

/// A mistake in an option that is only detected when something is built from it.
class OptionError : public UsageError {
 public:
  /// `path` is the option's path, "model.layers.3.conv"; `message` describes the mistake.
  OptionError(std::string path, std::string message)
      : UsageError(path + ": " + message), path_(std::move(path)), message_(std::move(message)) {}

  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }

 private:
  std::string path_, message_;
};

/// The position of the option at `path` in the written configuration: the origin of the deepest
/// existing node on its path. Keys from defaults and shorthands are skipped.
Origin origin_of(const Node& written, const std::string& path);

/// Rethrows the error as a UsageError with the position in the recipe.
[[noreturn]] void throw_with_origin(const OptionError& error, const Node& written);

}  // namespace gallop::config
