#include "gallop/base/base64.h"

#include <gtest/gtest.h>

namespace gallop {
namespace {

// The test vectors of RFC 4648, section 10.
TEST(Base64, EncodesTheTestVectorsOfRfc4648) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foob"), "Zm9vYg==");
  EXPECT_EQ(to_base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, EncodesAllBytes) {
  EXPECT_EQ(to_base64(std::string_view("\0\xff\xfe", 3)), "AP/+");
  EXPECT_EQ(to_base64("\xfb\xef\xbe"), "++++");
}

}  // namespace
}  // namespace gallop
