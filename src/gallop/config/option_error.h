#pragma once

#include <string>
#include <utility>

#include "gallop/base/error.h"
#include "gallop/config/node.h"

namespace gallop::config {

/// A mistake in an option that shows only where something is built from it.
class OptionError : public UsageError {
 public:
  /// `path` is the option's, "model.layers.3.conv"; the message says what is wrong with it.
  OptionError(std::string path, std::string message)
      : UsageError(path + ": " + message), path_(std::move(path)), message_(std::move(message)) {}

  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }

 private:
  std::string path_, message_;
};

/// Where the option at `path` stands in what was written: the origin of the deepest node on the
/// way to it. Keys that are not written, as those of defaults and shorthands, are passed over.
Origin origin_of(const Node& written, const std::string& path);

/// Throws the error once more as the UsageError of a mistake in a recipe, with its place.
[[noreturn]] void throw_with_origin(const OptionError& error, const Node& written);

}  // namespace gallop::config
