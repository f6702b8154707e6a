#include "gallop/base/protobuf.h"

#include <gtest/gtest.h>

#include "unit/base/error_of.h"

namespace gallop {
namespace {

// From https://protobuf.dev/programming-guides/encoding.
TEST(Protobuf, EncodesTheExamplesOfTheGuide) {
  ProtobufWriter writer;
  writer.integer(1, 150);
  writer.bytes(2, "testing");
  EXPECT_EQ(writer.message(), "\x08\x96\x01\x12\x07testing");
}

TEST(Protobuf, RoundTrips) {
  ProtobufWriter writer;
  writer.integer(1, ~uint64_t{0});
  writer.real(2, 0.1);
  writer.real32(16, -0.5F);
  writer.bytes(3, std::string("a\0b", 3));
  ProtobufReader reader(writer.message());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 1u);
  EXPECT_EQ(reader.integer(), ~uint64_t{0});
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.real(), 0.1);
  EXPECT_EQ(reader.integer(), 0u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 16u);
  EXPECT_EQ(reader.real(), -0.5);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), std::string("a\0b", 3));
  EXPECT_FALSE(reader.next());
}

TEST(Protobuf, RejectsDamagedMessages) {
  for (const std::string& message :
       {std::string("\x08"), std::string("\x12\x07test"), std::string("\x0B"),
        std::string("\x00", 1), std::string("\x09\x01"), std::string(11, '\xFF')}) {
    const auto read = [&] {
      for (ProtobufReader reader(message); reader.next();) continue;
    };
    EXPECT_EQ(error_of(read), "a damaged Protocol Buffers message");
  }
}

}  // namespace
}  // namespace gallop
