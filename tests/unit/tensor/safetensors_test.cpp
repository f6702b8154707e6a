#include "gallop/tensor/safetensors.h"

#include <unistd.h>

#include <cstdlib>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/tensor/safetensors_header.h"
#include "unit/fixtures.h"

namespace gallop {
namespace {

class SafetensorsFile : public testing::Test {
 protected:
  SafetensorsFile() { make_folders(folder_); }
  ~SafetensorsFile() override { fs::remove_all(folder_); }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("gallop-safetensors-{}", getpid());
  fs::path path_ = folder_ / "a.safetensors";
};

NamedTensors examples() {
  const at::Tensor numbers = at::arange(24, at::TensorOptions(c10::kFloat)).reshape({1, 2, 3, 4});
  return {{"f32", numbers - 7.5},
          {"last", numbers.contiguous(at::MemoryFormat::ChannelsLast)},
          {"slice", numbers.slice(3, 0, 4, 2)},
          {"i64", numbers.to(c10::kLong)},
          {"bf16", numbers.to(c10::kBFloat16)},
          {"f16", numbers.to(c10::kHalf)},
          {"flag", numbers > 3},
          {"u8", numbers.to(c10::kByte)},
          {"c64", at::complex(numbers, numbers + 1).conj()},
          {"scalar", at::scalar_tensor(3, at::TensorOptions(c10::kDouble))},
          {"empty", at::zeros({0, 5})}};
}

const at::Tensor& find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& item : tensors) {
    if (item.name == name) return item.tensor;
  }
  throw std::out_of_range(name);
}

TEST_F(SafetensorsFile, RoundTripsEveryLayoutAndType) {
  const NamedTensors tensors = examples();
  const WrittenFile written = write_safetensors(path_, tensors, {{"format", "pt"}});
  EXPECT_EQ(written.bytes, static_cast<int64_t>(fs::file_size(path_)));
  EXPECT_EQ(written.xxh3_128, xxh3_128(read_file(path_)));
  const Safetensors content = read_safetensors(path_);
  EXPECT_EQ(content.metadata.at("format"), "pt");
  ASSERT_EQ(content.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(at::equal(find(content.tensors, name), tensor)) << name;
    EXPECT_EQ(find(content.tensors, name).scalar_type(), tensor.scalar_type()) << name;
  }
}

TEST_F(SafetensorsFile, OrdersByAlignmentThenName) {
  write_safetensors(path_, {{"b", at::ones({1})},
                            {"c", at::ones({1}, at::TensorOptions(c10::kByte))},
                            {"d", at::ones({1}, at::TensorOptions(c10::kLong))},
                            {"a", at::ones({1})}});
  std::string order;
  for (const auto& item : read_safetensors(path_).tensors) order += item.name;
  EXPECT_EQ(order, "dabc");
}

TEST_F(SafetensorsFile, TensorsOutliveTheFile) {
  write_safetensors(path_, examples());
  at::Tensor kept = find(read_safetensors(path_).tensors, "f32");
  fs::remove(path_);
  EXPECT_EQ(kept.sum().item<float>(), 276 - 7.5f * 24);
}

TEST_F(SafetensorsFile, CopiesUnalignedTensors) {
  SafetensorsHeader header{.entries = {{.name = "byte", .dtype = "U8", .shape = {1}},
                                       {.name = "number", .dtype = "F32", .shape = {2}}},
                           .metadata = {}};
  std::string file = format_safetensors_header(header) + "!";
  const float numbers[] = {1.5f, -2.0f};
  file.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  write_file_atomically(path_, file);
  const at::Tensor number = find(read_safetensors(path_).tensors, "number");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(number.const_data_ptr()) % 4, 0u);
  EXPECT_EQ(number[1].item<float>(), -2);
}

TEST_F(SafetensorsFile, NormalizesBooleans) {
  SafetensorsHeader header{.entries = {{.name = "b", .dtype = "BOOL", .shape = {3}}},
                           .metadata = {}};
  write_file_atomically(path_, format_safetensors_header(header) + std::string("\0\1\xff", 3));
  EXPECT_EQ(find(read_safetensors(path_).tensors, "b").sum().item<int64_t>(), 2);
}

TEST_F(SafetensorsFile, RejectsUnsupportedTypesByName) {
  SafetensorsHeader header{.entries = {{.name = "x", .dtype = "F6_E2M3", .shape = {4}}},
                           .metadata = {}};
  write_file_atomically(path_, format_safetensors_header(header) + "abc");
  try {
    read_safetensors(path_);
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("tensor 'x' has the unsupported type F6_E2M3"),
              std::string::npos);
  }
  EXPECT_THROW(
      write_safetensors(path_, {{"z", at::empty({1}, at::TensorOptions(c10::kComplexDouble))}}),
      UsageError);
}

TEST_F(SafetensorsFile, ReportsMissingFilesAndFolders) {
  EXPECT_THROW(read_safetensors(folder_ / "none"), DataError);
  EXPECT_THROW(read_safetensors(folder_), DataError);
  EXPECT_THROW(write_safetensors(folder_ / "none" / "a", examples()), DeviceError);
  EXPECT_THROW(write_safetensors(path_, {{"undefined", at::Tensor()}}), InternalError);
}

TEST_F(SafetensorsFile, ReadsWhatPythonWrote) {
  const Safetensors content = read_safetensors(fixtures() / "python.safetensors");
  EXPECT_EQ(content.metadata,
            (std::map<std::string, std::string>{{"format", "pt"}, {"note", "ä"}}));
  ASSERT_EQ(content.tensors.size(), 19u);
  const at::Tensor pattern =
      at::arange(6, at::TensorOptions(c10::kFloat)).remainder(2).reshape({2, 3});
  int patterns = 0;
  for (const auto& [name, tensor] : content.tensors) {
    if (tensor.dim() != 2 || tensor.numel() == 0) continue;
    ++patterns;
    const auto type = tensor.is_complex() ? c10::kComplexFloat : c10::kFloat;
    EXPECT_TRUE(at::equal(tensor.to(type), pattern.to(type))) << name;
  }
  EXPECT_EQ(patterns, 16);
  EXPECT_EQ(find(content.tensors, "bf16").scalar_type(), c10::kBFloat16);
  EXPECT_EQ(find(content.tensors, "u16").scalar_type(), c10::ScalarType::UInt16);
  EXPECT_EQ(find(content.tensors, "scalar").item<float>(), 2.5f);
  EXPECT_EQ(find(content.tensors, "empty").sizes(), (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(find(content.tensors, "name with ümlaut/and.dots").item<int64_t>(), -7);
}

// GALLOP_TEST_PYTHON names a Python with the package safetensors; python3 is tried without it.
TEST_F(SafetensorsFile, PythonReadsWhatWasWritten) {
  const char* chosen = std::getenv("GALLOP_TEST_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  if (std::system((python + " -c 'import safetensors' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << python << " has no package safetensors";
  }
  const NamedTensors tensors = examples();
  write_safetensors(path_, tensors, {{"format", "pt"}});
  const fs::path script = fixtures().parent_path() / "parity" / "list_safetensors.py";
  const fs::path output = folder_ / "output";
  ASSERT_EQ(std::system(fmt::format("{} {} {} > {}", python, script.string(), path_.string(),
                                    output.string())
                            .c_str()),
            0);
  std::map<std::string, std::string> expected;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor plain = tensor.resolve_conj().contiguous();
    std::string line;
    const auto* bytes = static_cast<const unsigned char*>(plain.const_data_ptr());
    for (size_t i = 0; i < plain.nbytes(); ++i) line += fmt::format("{:02x}", bytes[i]);
    expected[name] = line;
  }
  std::string listed = read_file(output);
  for (const auto& [name, hex] : expected) {
    EXPECT_TRUE(listed.starts_with(name + " ")) << listed.substr(0, 80);
    const size_t end = listed.find('\n');
    EXPECT_TRUE(listed.substr(0, end).ends_with("] " + hex)) << name;
    listed.erase(0, end + 1);
  }
  EXPECT_EQ(listed, "");
}

}  // namespace
}  // namespace gallop
