#include <algorithm>
#include <string_view>

#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/ui/http/target.h"

using namespace gallop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto is_control = [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
  };
  try {
    const ui::http::Target target = ui::http::parse_target(text);
    require(target.path.starts_with('/') && target.path.size() <= size);
    require(target.path.find('\\') == std::string::npos);
    require((target.path + "/").find("/../") == std::string::npos);
    require(std::none_of(target.path.begin(), target.path.end(), is_control));
    for (const auto& [name, value] : target.query) {
      require(name.size() + value.size() <= size);
      require(std::none_of(name.begin(), name.end(), is_control));
      // Names of runs may contain all other characters.
      require(value.find('\0') == std::string::npos);
    }
  } catch (const UsageError&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {"/api/runs?filter=metrics.accuracy%20%3E%200.9&limit=200&columns=a,b+c",
          "/%2e%2e/%2f..%5c", "/api/run?name=%3Cimg%3E&name=x", "/a/../b?x=%00", "/chart.js"};
}
