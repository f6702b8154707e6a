#include <unistd.h>

#include <fstream>
#include <functional>
#include <limits>

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/model/exported/archive.h"
#include "unit/fixtures.h"
#include "unit/zip_writer.h"

namespace gallop::model::exported {
namespace {

using Json = nlohmann::json;
using Files = std::vector<ZipFile>;

Files files_of(const char* fixture) {
  ZipArchive zip(fixtures() / "archives" / fixture);
  Files files;
  for (const ZipEntry& entry : zip.entries()) {
    files.push_back({.name = entry.name, .content = std::string(zip.bytes(entry))});
  }
  return files;
}

std::string& content_of(Files& files, const std::string& name) {
  for (ZipFile& file : files) {
    if (file.name == name) return file.content;
  }
  throw std::out_of_range(name);
}

void change_json(Files& files, const std::string& name, const std::function<void(Json&)>& change) {
  std::string& text = content_of(files, name);
  Json json = Json::parse(text);
  change(json);
  text = json.dump();
}

const ArchivedTensor& find(const std::vector<ArchivedTensor>& tensors, const std::string& name) {
  for (const ArchivedTensor& each : tensors) {
    for (const std::string& each_name : each.names) {
      if (each_name == name) return each;
    }
  }
  throw std::out_of_range(name);
}

class ExportedArchive : public testing::Test {
 protected:
  ExportedArchive() { make_folders(folder_); }
  ~ExportedArchive() override { fs::remove_all(folder_); }

  Archive open(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return Archive(path_);
  }

  // Reads everything; the error without the file's name, or an empty text.
  std::string problem(const std::string& bytes, const NamedTensors& given = {}) {
    try {
      Archive archive = open(bytes);
      for (const std::string& model : archive.models()) {
        archive.program(model);
        archive.weights(model, given);
        archive.constants(model);
        archive.sample_inputs(model);
      }
    } catch (const DataError& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with(path_.string())) << text;
      return text.substr(path_.string().size());
    }
    return "";
  }

  void expect_problem(const Files& files, const std::string& expected) {
    const std::string actual = problem(ZipWriter{}.write(files));
    EXPECT_NE(actual.find(expected), std::string::npos)
        << "expected: " << expected << "\nactual: " << actual;
  }

  // Changes the meta of a weight of net.pt2.
  void expect_weight_problem(const std::string& name, const std::function<void(Json&)>& change,
                             const std::string& expected) {
    Files files = files_of("net.pt2");
    change_json(files, "net/data/weights/model_weights_config.json",
                [&](Json& json) { change(json["config"][name]); });
    expect_problem(files, fmt::format(": weight '{}': {}", name, expected));
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("gallop-archive-{}", getpid());
  fs::path path_ = folder_ / "net.pt2";
};

TEST_F(ExportedArchive, ReadsPrograms) {
  Archive net(fixtures() / "archives/net.pt2");
  EXPECT_EQ(net.models(), std::vector<std::string>{"model"});
  EXPECT_EQ(net.program("model").inputs.size(), 18u);
  EXPECT_FALSE(net.sample_inputs("model").empty());
  EXPECT_EQ(net.extra("gallop.json"), "");
  EXPECT_THROW(net.program("eval"), UsageError);

  Archive two(fixtures() / "archives/two.pt2");
  EXPECT_EQ(two.models(), (std::vector<std::string>{"eval", "train"}));
  EXPECT_EQ(two.extra("gallop.json"), "{\"seed\": 1}");
}

TEST_F(ExportedArchive, DefinitionHasAllButTheValuesOfWeights) {
  Archive net(fixtures() / "archives/net.pt2");
  EXPECT_FALSE(net.is_definition());
  const std::string bytes = net.definition();
  Archive definition = open(bytes);
  EXPECT_TRUE(definition.is_definition());
  EXPECT_EQ(definition.fingerprint(), net.fingerprint());
  EXPECT_EQ(definition.definition(), bytes);
  EXPECT_EQ(definition.models(), net.models());
  EXPECT_EQ(definition.program("model").graph.nodes.size(),
            net.program("model").graph.nodes.size());
  EXPECT_EQ(definition.sample_inputs("model"), "");

  const auto weights = net.weights("model"), zeros = definition.weights("model");
  ASSERT_EQ(zeros.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(zeros[i].names, weights[i].names);
    EXPECT_EQ(zeros[i].requires_grad, weights[i].requires_grad);
    EXPECT_EQ(zeros[i].tensor.strides(), weights[i].tensor.strides());
    EXPECT_TRUE(at::equal(zeros[i].tensor, at::zeros_like(weights[i].tensor)));
  }
  const auto constants = net.constants("model"), same = definition.constants("model");
  ASSERT_EQ(same.size(), constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    EXPECT_TRUE(at::equal(same[i].tensor, constants[i].tensor));
  }

  Files files = files_of("net.pt2");
  content_of(files, "net/data/weights/weight_0")[0] ^= 1;
  EXPECT_NE(open(ZipWriter{}.write(files)).fingerprint(), net.fingerprint());
}

TEST_F(ExportedArchive, ReadsWeightsAsTorchWroteThem) {
  Archive net(fixtures() / "archives/net.pt2");
  const auto weights = net.weights("model");
  std::string names;
  for (const ArchivedTensor& each : weights) {
    names += fmt::format("{}{}{} ", fmt::join(each.names, "="), each.is_parameter ? "!" : "",
                         each.requires_grad ? "" : "?");
  }
  EXPECT_EQ(names,
            "a.bias! a.weight! c.bias! c.weight=d.weight! e? norm.bias! "
            "norm.num_batches_tracked? norm.running_mean? norm.running_var? norm.weight! v! w! ");
  EXPECT_TRUE(at::equal(find(weights, "norm.weight").tensor, at::ones({3})));
  EXPECT_EQ(find(weights, "norm.num_batches_tracked").tensor.scalar_type(), c10::kLong);
  EXPECT_EQ(find(weights, "norm.num_batches_tracked").tensor.dim(), 0);

  // Two parts of one storage, of which one is transposed, and an expanded buffer.
  ZipArchive zip(fixtures() / "archives/net.pt2");
  const std::string_view flat = zip.bytes(*zip.find("net/data/weights/weight_0"));
  const at::Tensor storage = at::from_blob(const_cast<char*>(flat.data()), {12}, c10::kFloat);
  const at::Tensor& v = find(weights, "v").tensor;
  const at::Tensor& w = find(weights, "w").tensor;
  EXPECT_TRUE(at::equal(v, storage.slice(0, 0, 6).view({2, 3})));
  EXPECT_TRUE(at::equal(w, storage.slice(0, 6, 12).view({2, 3}).t()));
  EXPECT_EQ(w.strides(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(w.storage_offset(), 0);
  EXPECT_FALSE(v.is_alias_of(w));
  const at::Tensor& e = find(weights, "e").tensor;
  EXPECT_TRUE(e.is_contiguous());
  EXPECT_TRUE(at::equal(e, at::arange(2.0).to(c10::kFloat).view({2, 1}).expand({2, 3})));
  e.add_(1);

  const auto constants = net.constants("model");
  ASSERT_EQ(constants.size(), 3u);
  EXPECT_TRUE(at::equal(find(constants, "t").tensor, at::arange(3.0).to(c10::kFloat)));
  EXPECT_TRUE(
      at::equal(find(constants, "lifted_tensor_1").tensor, at::arange(0, 4, 2).to(c10::kLong)));
}

TEST_F(ExportedArchive, TakesWeightsWithoutDataByName) {
  Archive two(fixtures() / "archives/two.pt2");
  NamedTensors train;
  for (const ArchivedTensor& each : two.weights("train")) {
    for (const std::string& name : each.names) train.push_back({name, each.tensor});
  }
  ASSERT_EQ(train.size(), 3u);
  EXPECT_EQ(train.back().tensor.scalar_type(), c10::kBFloat16);
  const auto eval = two.weights("eval", train);
  ASSERT_EQ(eval.size(), 3u);
  for (const NamedTensor& each : train) {
    EXPECT_TRUE(find(eval, each.name).tensor.is_same(each.tensor)) << each.name;
  }

  const std::string bytes = ZipWriter{}.write(files_of("two.pt2"));
  const std::string missing = problem(bytes);
  EXPECT_TRUE(
      missing.starts_with(" (program 'eval'): weight 'fc.bias': has no data: the program "
                          "was exported with sizes only"))
      << missing;
  train[0].tensor = at::zeros({3});
  EXPECT_NE(problem(bytes, train).find("is Float [2], but the one given for it is Float [3]"),
            std::string::npos);
  // Tied weights are given as one tensor.
  const at::Tensor shared = at::zeros({2});
  Files files = files_of("two.pt2");
  change_json(files, "two/data/weights/eval_weights_config.json",
              [](Json& json) { json["config"]["tied"] = json["config"]["fc.bias"]; });
  Archive tied = open(ZipWriter{}.write(files));
  const auto weights = tied.weights("eval", {{"fc.bias", shared},
                                             {"tied", shared},
                                             {"fc.weight", train[1].tensor},
                                             {"weighting", train[2].tensor}});
  EXPECT_EQ(find(weights, "tied").names, (std::vector<std::string>{"fc.bias", "tied"}));
}

TEST_F(ExportedArchive, RejectsMetaThatDoesNotFitTheStorage) {
  const auto number = [](int64_t value) { return Json{{"as_int", value}}; };
  const auto set = [&](const char* key, size_t index, int64_t value) {
    return [=](Json& json) { json["tensor_meta"][key][index] = number(value); };
  };
  expect_weight_problem("a.weight", set("sizes", 0, 4),
                        "goes beyond the 48 bytes of its storage; if the model was on a GPU, "
                        "export it on a CPU, or with torch 2.11 or newer");
  expect_weight_problem("a.weight", set("strides", 0, 5), "goes beyond the 48 bytes");
  expect_weight_problem("a.weight", set("strides", 0, -4), "has the negative size or stride -4");
  expect_weight_problem("a.weight", set("sizes", 0, int64_t{1} << 61), "has the absurd sizes");
  expect_weight_problem("a.weight", set("strides", 0, int64_t{1} << 62), "goes beyond");
  expect_weight_problem(
      "a.weight", [&](Json& json) { json["tensor_meta"]["storage_offset"] = number(1); },
      "goes beyond the 48 bytes");
  expect_weight_problem(
      "a.weight",
      [&](Json& json) {
        json["tensor_meta"]["storage_offset"] = number(std::numeric_limits<int64_t>::max());
      },
      "goes beyond the 48 bytes");
  expect_weight_problem("e", set("sizes", 1, int64_t{1} << 40),
                        "overlaps with others in the archive, or is expanded, to over 1 GiB");
  expect_weight_problem(
      "a.weight", [](Json& json) { json["tensor_meta"]["dtype"] = 8; }, "goes beyond the 48 bytes");
  expect_weight_problem(
      "a.weight", [](Json& json) { json["tensor_meta"]["dtype"] = 99; },
      "dtype 99 is not supported");
  expect_weight_problem(
      "a.weight", [](Json& json) { json["tensor_meta"]["layout"] = 1; },
      "a sparse or quantized tensor");
  expect_weight_problem(
      "a.weight", [](Json& json) { json["tensor_meta"]["strides"].erase(0); },
      "2 sizes, but 1 strides");
  expect_weight_problem(
      "a.weight", [](Json& json) { json["tensor_meta"] = nullptr; }, "is a pickled object");
  expect_weight_problem(
      "a.weight", [](Json& json) { json["use_pickle"] = true; },
      "is pickled (a subclass of Tensor)");
  expect_weight_problem(
      "a.weight", [](Json& json) { json["path_name"] = "../constants/tensor_0"; },
      "its data '../constants/tensor_0' are missing");
  expect_weight_problem(
      "a.weight",
      [](Json& json) {
        json["tensor_meta"]["sizes"][0] = {{"as_expr", {{"expr_str", "Symbol('s0')"}}}};
      },
      "has the symbolic size 's0'");
}

// torch 2.15 stores objects of Python classes, and TorchScript classes were stored before.
TEST_F(ExportedArchive, LeavesOutConstantsThatAreNoTensors) {
  Files files = files_of("net.pt2");
  const size_t constants = Archive(fixtures() / "archives/net.pt2").constants("model").size();
  change_json(files, "net/data/constants/model_constants_config.json", [](Json& json) {
    json["config"]["box"] = {{"path_name", "opaque_obj_0"},
                             {"is_param", false},
                             {"use_pickle", true},
                             {"tensor_meta", nullptr}};
  });
  files.push_back({.name = "net/data/constants/opaque_obj_0", .content = "a pickle"});
  EXPECT_EQ(open(ZipWriter{}.write(files)).constants("model").size(), constants);
}

TEST_F(ExportedArchive, ReadsMisalignedStoragesAndBools) {
  Files files = files_of("net.pt2");
  const std::string name = "net/data/weights/weight_8";  // norm.running_mean
  change_json(files, "net/data/weights/model_weights_config.json", [&](Json& json) {
    for (auto& item : json["config"].items()) {
      if (item.value()["path_name"] == "weight_8") item.value()["tensor_meta"]["dtype"] = 12;
    }
  });
  content_of(files, name) = std::string("\x02\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", 12);
  for (const size_t alignment : {64, 1}) {
    Archive net = open(ZipWriter{.alignment = alignment}.write(files));
    bool found = false;
    for (const ArchivedTensor& each : net.weights("model")) {
      if (each.tensor.scalar_type() != c10::kBool) continue;
      found = true;
      EXPECT_TRUE(at::equal(each.tensor.to(c10::kLong), at::tensor({1L, 0L, 1L})));
    }
    EXPECT_TRUE(found);
    EXPECT_TRUE(
        at::equal(find(net.constants("model"), "t").tensor, at::arange(3.0).to(c10::kFloat)));
  }
}

TEST_F(ExportedArchive, NamesTheDamagedWeight) {
  std::string bytes = ZipWriter{}.write(files_of("net.pt2"));
  open(bytes);
  const auto data =
      static_cast<size_t>(ZipArchive(path_).find("net/data/weights/weight_2")->offset);
  bytes[data] = static_cast<char>(bytes[data] ^ 1);
  const std::string actual = problem(bytes);
  EXPECT_TRUE(actual.starts_with(": weight 'a.bias' is damaged (CRC-32 ")) << actual;
}

TEST_F(ExportedArchive, SaysWhatOtherFilesAre) {
  const std::string data = "net/data/";
  const Files base = {{"net/archive_format", "pt2"}, {"net/archive_version", "0"}};
  const auto with = [&base](Files more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  expect_problem({}, "is an empty archive");
  expect_problem({{"a/b", "c"}},
                 "is not an archive of torch.export.save(): it has no "
                 "archive_format");
  expect_problem({{"serialized_exported_program.json", "{}"}, {"version", "8.7"}},
                 "was saved by torch 2.7 or older, whose layout is not supported; export the model "
                 "again with torch 2.9 or newer");
  expect_problem({{"net/data.pkl", ""}, {"net/constants.pkl", ""}}, "is a TorchScript file");
  expect_problem({{"net/data.pkl", ""}, {"net/data/0", ""}}, "is a file of torch.save()");
  expect_problem({{"net/archive_format", "pt3"}}, "has the format 'pt3' instead of 'pt2'");
  expect_problem({{"net/archive_format", "pt2"}, {"net/archive_version", "1"}}, "has version '1'");
  expect_problem(with({{"net/byteorder", "big"}}), "has the byte order 'big'");
  expect_problem(with({{"other/a", ""}}),
                 "entry 'other/a' is outside of the archive's folder 'net/'");
  expect_problem(with({}), "holds no program: torch.export.save() did not finish");
  expect_problem(with({{"net/data/aotinductor/model/a.so", ""}}), "compiled by AOTInductor");
  expect_problem(with({{"net/models/model.json", R"({"torch_version": "2.8.0"})"},
                       {"net/data/weights/model.pt", "x"}}),
                 "was saved by torch 2.8.0, which pickles the weights; export the model again with "
                 "torch 2.9 or newer");
  expect_problem(with({{"net/models/model.json", "{}"}}),
                 "entry 'data/weights/model_weights_config.json' is missing");
}

// Everything that a training reads.
std::string contents_of(Archive& archive, const NamedTensors& given) {
  std::string all;
  for (const std::string& model : archive.models()) {
    for (const Node& node : archive.program(model).graph.nodes) all += describe(node) + "\n";
    for (const auto& tensors : {archive.weights(model, given), archive.constants(model)}) {
      for (const ArchivedTensor& each : tensors) {
        const at::Tensor values = each.tensor.contiguous();
        all += fmt::format("{} {} {} ", each.names, each.is_parameter, each.requires_grad);
        all.append(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
      }
    }
    all += archive.sample_inputs(model);
  }
  return all + std::string(archive.extra("gallop.json"));
}

// The weights of which two.pt2 has only the sizes in its second program.
NamedTensors weights_of_training() {
  NamedTensors weights;
  for (const ArchivedTensor& each : Archive(fixtures() / "archives/two.pt2").weights("train")) {
    weights.push_back({each.names[0], each.tensor});
  }
  return weights;
}

// Bytes that nothing depends on, such as times of files, may have any value.
TEST_F(ExportedArchive, EveryFlippedByteIsFoundOrChangesNothing) {
  const std::string bytes = ZipWriter{}.write(files_of("two.pt2"));
  const NamedTensors train = weights_of_training();
  Archive whole = open(bytes);
  const std::string wanted = contents_of(whole, train);
  std::fstream file(path_);
  const auto write = [&](size_t place, char byte) {
    file.seekp(static_cast<std::streamoff>(place));
    file.put(byte).flush();
  };
  size_t found = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    write(i, static_cast<char>(~bytes[i]));
    try {
      Archive changed(path_);
      EXPECT_EQ(contents_of(changed, train), wanted) << "byte " << i;
    } catch (const DataError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path_.string())) << error.what();
      found += 1;
    }
    write(i, bytes[i]);
  }
  EXPECT_GT(found, bytes.size() * 3 / 4);
}

TEST_F(ExportedArchive, FindsTruncation) {
  const std::string bytes = ZipWriter{}.write(files_of("two.pt2"));
  const NamedTensors train = weights_of_training();
  ASSERT_EQ(problem(bytes, train), "");
  for (size_t i = 0; i < bytes.size(); i += 5) {
    EXPECT_NE(problem(bytes.substr(0, i), train), "") << i;
  }
}

}  // namespace
}  // namespace gallop::model::exported
