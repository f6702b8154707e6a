#include <set>
#include <sstream>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/compile/codegen/cpu_source.h"
#include "gallop/compile/codegen/embedded_headers.h"

namespace gallop::compile {

namespace {

const char* find_text(const std::string& path) {
  for (const EmbeddedHeader& header : embedded_headers()) {
    if (path == header.path) return header.text;
  }
  throw InternalError(fmt::format("{} is not built into the program", path));
}

// Appends a header with its own includes expanded, each header once.
void append(const std::string& path, std::set<std::string>& done, std::string& text) {
  if (!done.insert(path).second) return;
  std::istringstream lines(find_text(path));
  const std::string ours = "#include \"";
  for (std::string line; std::getline(lines, line);) {
    if (line == "#pragma once") continue;
    if (line.starts_with(ours)) {
      append(line.substr(ours.size(), line.rfind('"') - ours.size()), done, text);
    } else {
      text += line;
      text += '\n';
    }
  }
}

}  // namespace

const std::string& cpu_prefix() {
  static const std::string kPrefix = [] {
    std::set<std::string> done;
    std::string text;
    // Must be first: others include them conditionally on the instruction set.
    for (const char* path : {"gallop/kernel/isa.h", "gallop/kernel/number.h",
                             "gallop/compile/codegen/loop_reductions.h"}) {
      append(path, done, text);
    }
    return text;
  }();
  return kPrefix;
}

}  // namespace gallop::compile
