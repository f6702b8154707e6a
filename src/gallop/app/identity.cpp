#include "gallop/app/identity.h"

namespace gallop::app {

namespace {

constexpr int64_t kMostBytes = int64_t{16} << 30;

}  // namespace

track::IdentityQuestion identity_question(const std::vector<std::string>& data,
                                          const fs::path& runs, int64_t step,
                                          const std::vector<std::string>& plugins) {
  track::IdentityQuestion question{.step = step,
                                   .version = GALLOP_VERSION,
                                   .plugins = plugins,
                                   .cache = user_cache_folder() / "contents",
                                   .listings = track::listings_of(runs)};
  question.limits.bytes = kMostBytes;
  for (const std::string& path : data) {
    question.data.push_back(fs::absolute(path).lexically_normal().string());
  }
  return question;
}

}  // namespace gallop::app
