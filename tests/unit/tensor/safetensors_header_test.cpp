#include "gallop/tensor/safetensors_header.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop {
namespace {

std::string file_with(const std::string& json, size_t data_bytes) {
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(json.size() >> (8 * i));
  return file + json + std::string(data_bytes, 'x');
}

std::string problem_of(const std::string& file) {
  try {
    parse_safetensors_header(file, "f");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(SafetensorsHeader, ReadsInTheOrderOfTheBytes) {
  const auto header = parse_safetensors_header(
      file_with(R"({"__metadata__":{"format":"pt"},)"
                R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                R"("a":{"shape":[],"data_offsets":[0,4],"dtype":"I32"},)"
                R"("none":{"dtype":"U8","shape":[0,9],"data_offsets":[4,4]}}   )",
                12),
      "f");
  ASSERT_EQ(header.entries.size(), 3u);
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[1].name, "none");
  EXPECT_EQ(header.entries[1].shape, (std::vector<int64_t>{0, 9}));
  EXPECT_EQ(header.entries[2].name, "b");
  EXPECT_EQ(header.entries[2].bytes, 8);
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, ReadsAnEmptyFileOfNoTensors) {
  EXPECT_TRUE(parse_safetensors_header(file_with("{}", 0), "f").entries.empty());
}

std::string tensor(const std::string& fields) { return "{\"t\":{" + fields + "}}"; }

TEST(SafetensorsHeader, RejectsInvalidHeaders) {
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  ASSERT_EQ(problem_of(file_with(tensor(good), 8)), "");
  const std::string deep = std::string(100000, '[');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "ends within its first 8 bytes"},
      {std::string(7, '\0'), "ends within its first 8 bytes"},
      {std::string(8, '\0'), "does not begin with '{'"},
      {std::string(8, '\xff'), "at most 100000000 are allowed"},
      {std::string("\x10\0\0\0\0\0\0\0{}", 10), "ends within its header"},
      {file_with(" {}", 0), "does not begin with '{'"},
      {file_with("\xef\xbb\xbf{}", 0), "does not begin with '{'"},
      {file_with("{}\n", 0), "does not end with '}' and spaces"},
      {file_with("{}{}", 0), "not JSON"},
      {file_with("{\"t\"}", 0), "not JSON"},
      {file_with("{\"\xff\":1}", 0), "not JSON in UTF-8"},
      {file_with("{/**/}", 0), "not JSON"},
      {file_with("{\"t\":1}", 0), "a number is out of place"},
      {file_with("{\"t\":null}", 0), "null is out of place"},
      {file_with("{\"t\":" + deep + "}", 0), "a list is out of place"},
      {file_with(tensor(R"("dtype":)" + deep + "}"), 0), "a list is out of place"},
      {file_with(tensor(R"("dtype":{"a":1})"), 0), "an object is out of place"},
      {file_with(tensor(R"("shape":[[2]])"), 0), "a list is out of place"},
      {file_with(tensor(R"("shape":["2"])"), 0), "text is out of place"},
      {file_with(tensor(R"("shape":[true])"), 0), "a boolean is out of place"},
      {file_with(tensor(R"("shape":[-1])"), 0), "a negative number is out of place"},
      {file_with(tensor(R"("shape":[2.0])"), 0), "a fraction or exponent is out of place"},
      {file_with(tensor(R"("shape":[18446744073709551615])"), 0), "is too large"},
      {file_with(tensor(R"("shape":[99999999999999999999999])"), 0), "a fraction or exponent"},
      {file_with(tensor(R"("dtype":"F33")"), 0), "tensor 't': unknown dtype 'F33'"},
      {file_with(tensor(good + R"(,"dtype":"U8")"), 8), "key 'dtype' is given twice"},
      {file_with(tensor(good + R"(,"more":"U8")"), 8), "unknown key 'more'"},
      {file_with(tensor(R"("dtype":"F32","shape":[2])"), 8), "data_offsets is missing"},
      {file_with(tensor(R"("shape":[2],"data_offsets":[0,8])"), 8), "dtype is missing"},
      {file_with(tensor(R"("dtype":"F32","data_offsets":[0,8])"), 8), "shape is missing"},
      {file_with(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), 8), "two numbers"},
      {file_with(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])"), 8), "two numbers"},
      {file_with(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), 8),
       "end before they begin"},
      {file_with(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[1,9])"), 9), "leave a gap"},
      {file_with(tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), 8),
       "8 bytes of data, but shape and dtype require 12"},
      {file_with(tensor(R"("dtype":"F4","shape":[3],"data_offsets":[0,1])"), 1),
       "too large for its type"},
      {file_with(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
                 0),
       "too large for its type"},
      {file_with(tensor(R"("dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"),
                 0),
       "too large for its type"},
      {file_with(tensor(R"("dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0])"), 0),
       "too large for its type"},
      {file_with(tensor(good), 7), "beyond the end of the file"},
      {file_with(tensor(good), 9), "1 unused bytes after the last tensor"},
      {file_with("{}", 1), "1 unused bytes after the last tensor"},
      {file_with("{\"t\":{" + good + "},\"t\":{" + good + "}}", 8), "key 't' is given twice"},
      {file_with("{\"t\":{" + good + "},\"u\":{" + good + "}}", 8), "overlap"},
      {file_with(R"({"z":{"dtype":"U8","shape":[0],"data_offsets":[4,4]},"t":{)" + good + "}}", 8),
       "overlap"},
      {file_with("{\"a\\u0007\":{" + good + "}}", 8), "control character in its name"},
      {file_with("{\"" + std::string(5000, 'n') + "\":{" + good + "}}", 8), "name of 5000 bytes"},
      {file_with(R"({"__metadata__":{"a":1}})", 0), "__metadata__: a number is out of place"},
      {file_with(R"({"__metadata__":{"a":{}}})", 0), "__metadata__: an object is out of place"},
      {file_with(R"({"__metadata__":"a"})", 0), "__metadata__: text is out of place"},
      {file_with(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "key 'a' is given twice"},
      {file_with(R"({"__metadata__":{},"__metadata__":{}})", 0), "given twice"},
  };
  for (const auto& [file, expected] : cases) {
    const std::string problem = problem_of(file);
    EXPECT_TRUE(problem.starts_with("f: not a valid safetensors file: ")) << expected;
    EXPECT_NE(problem.find(expected), std::string::npos)
        << "expected: " << expected << "\nactual: " << problem;
  }
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  EXPECT_NE(problem_of(file_with(tensor("\"shape\":[" + many + "]"), 0)).find("64 dimensions"),
            std::string::npos);
}

TEST(SafetensorsHeader, WritesWhatItReads) {
  SafetensorsHeader header{.entries = {{.name = "b", .dtype = "I64", .shape = {3}},
                                       {.name = "a/ä", .dtype = "U8", .shape = {}}},
                           .metadata = {{"k", "v\n"}}};
  std::string file = format_safetensors_header(header);
  EXPECT_EQ(file.size() % 8, 0u);
  EXPECT_EQ(header.entries[0].begin, static_cast<int64_t>(file.size()));
  file.resize(file.size() + 25);
  const auto again = parse_safetensors_header(file, "f");
  ASSERT_EQ(again.entries.size(), 2u);
  EXPECT_EQ(again.entries[1].name, "a/ä");
  EXPECT_EQ(again.entries[1].begin, header.entries[1].begin);
  EXPECT_EQ(again.metadata, header.metadata);
}

TEST(SafetensorsHeader, DoesNotWriteInvalidHeaders) {
  const SafetensorsEntry good{.name = "a", .dtype = "U8", .shape = {2}};
  const std::vector<std::vector<SafetensorsEntry>> cases = {
      {good, good},
      {{.name = "__metadata__", .dtype = "U8", .shape = {}}},
      {{.name = "a\n", .dtype = "U8", .shape = {}}},
      {{.name = "\xff", .dtype = "U8", .shape = {}}},
      {{.name = "big", .dtype = "U8", .shape = {int64_t{1} << 40, int64_t{1} << 40}}},
      {{.name = "a", .dtype = "U8", .shape = {int64_t{1} << 59}},
       {.name = "b", .dtype = "U8", .shape = std::vector<int64_t>(65, 1)}},
  };
  for (const auto& entries : cases) {
    SafetensorsHeader header{.entries = entries, .metadata = {}};
    EXPECT_THROW(format_safetensors_header(header), UsageError);
  }
}

}  // namespace
}  // namespace gallop
