#include "gallop/base/crc32c.h"

#include <string>

#include <gtest/gtest.h>

namespace gallop {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, MatchesRfc3720) {
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising += byte;
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c(std::string(rising.rbegin(), rising.rend())), 0x113FDB5Cu);
  EXPECT_EQ(crc32c(""), 0u);
}

}  // namespace
}  // namespace gallop
