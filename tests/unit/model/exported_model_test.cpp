// The model "exported" on archives that tests/parity/make_exported_nets.py made.
#include "gallop/model/exported/exported_model.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/file.h"
#include "gallop/model/exported/description.h"
#include "gallop/tensor/safetensors.h"
#include "gallop/tensor/zip_archive.h"
#include "unit/base/error_of.h"
#include "unit/fixtures.h"
#include "unit/model/exported_case.h"
#include "unit/zip_writer.h"

namespace gallop::model {
namespace {

std::string net(const std::string& name) {
  return (fixtures() / "exported/nets" / (name + ".pt2")).string();
}

const Task kDigits{.channels = 1, .height = 12, .width = 12, .classes = 10};

Task texts(int64_t classes) {
  return {.kind = Task::Kind::kText,
          .classes = classes,
          .context = 16,
          .vocabulary = 24,
          .per_element = false,
          .padded = true};
}

at::Tensor images(int64_t count) {
  return at::sin(at::arange(count * 144, c10::kFloat)).view({count, 1, 12, 12});
}

std::unique_ptr<Model> make(const ExportedConfig& config, const Task& task = kDigits,
                            const InitialWeights& weights = {}) {
  auto model = make_exported(config, task, weights);
  model->set_training(false);
  return model;
}

at::Tensor outputs(Model& model, const NamedTensors& batch) {
  const at::NoGradGuard no_grad;
  return model.forward(batch);
}

class ExportedModelFiles : public testing::Test {
 protected:
  ExportedModelFiles() { make_folders(folder_); }
  ~ExportedModelFiles() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::temp_directory_path() / fmt::format("gallop-exported-{}", getpid());
};

TEST(ExportedModel, HasTheNamesOfTheStateDict) {
  const auto model = make({.file = net("digits")});
  EXPECT_EQ(model->parameters().front().name, "blocks.0.conv.weight");
  EXPECT_EQ(model->files(), std::vector<std::string>{net("digits")});
  EXPECT_EQ(model->fixed_batch(), 0);
  std::string written;
  for (const NamedTensor& one : model->statistics()) written += one.name + " ";
  EXPECT_EQ(written,
            "blocks.0.norm.num_batches_tracked blocks.0.norm.running_mean "
            "blocks.0.norm.running_var blocks.1.norm.num_batches_tracked "
            "blocks.1.norm.running_mean blocks.1.norm.running_var stem.1.num_batches_tracked "
            "stem.1.running_mean stem.1.running_var ");
  EXPECT_EQ(model->blocks(), 2);
  EXPECT_EQ(outputs(*model, {{"input", images(5)}}).sizes(), (std::vector<int64_t>{5, 10}));
}

TEST(ExportedModel, EvaluatesAnyNumberOfSamplesWithAProgramOfOne) {
  const auto model = make({.file = net("flat")});
  EXPECT_EQ(model->fixed_batch(), 16);
  const at::Tensor all = images(37), whole = outputs(*model, {{"input", all}});
  ASSERT_EQ(whole.size(0), 37);
  for (const int64_t begin : {0, 16, 21}) {
    const at::Tensor part = outputs(*model, {{"input", all.narrow(0, begin, 16)}});
    EXPECT_TRUE(at::equal(part, whole.narrow(0, begin, 16))) << begin;
  }
  const at::Tensor few = outputs(*model, {{"input", all.narrow(0, 0, 5)}});
  EXPECT_TRUE(at::equal(few, whole.narrow(0, 0, 5)));
}

TEST(ExportedModel, TakesImagesOfAnySizeIfHeightAndWidthVary) {
  const Task task{.channels = 3, .height = 8, .width = 8, .classes = 10};
  const auto model_of = [&](const std::string& name) {
    return make({.file = (exported::folder() / name).string()}, task);
  };
  EXPECT_FALSE(model_of("cnn.pt2")->takes_any_size());
  const auto model = model_of("any-size.pt2");
  EXPECT_TRUE(model->takes_any_size());
  EXPECT_EQ(outputs(*model, {{"input", at::ones({2, 3, 16, 24})}}).sizes(),
            (std::vector<int64_t>{2, 10}));
}

// Both programs have a constant of the same name.
TEST(ExportedModel, HasTheConstantsOfEachMode) {
  const exported::Json json = exported::read(exported::folder() / "modes.json");
  const auto model = make({.file = (exported::folder() / "modes.pt2").string()},
                          {.kind = Task::Kind::kNumbers, .classes = 4, .features = 8});
  const exported::Json& sizes = json["runs"][0]["sizes"];
  for (const bool trains : {false, true}) {
    const exported::Trained expected(json, "modes", trains);
    const at::Tensor x = expected.inputs(sizes).at("x");
    model->set_training(trains);
    EXPECT_TRUE(at::equal(model->forward(x), expected.run(sizes).begin()->second)) << trains;
  }
  model->to(c10::kCPU, /*channels_last=*/false);
  const auto description =
      exported::describe_archive((exported::folder() / "modes.pt2").string(), /*runs_sample=*/true);
  EXPECT_TRUE(description.problems.empty());
}

TEST(ExportedModel, MasksThePaddingOfTexts) {
  const auto model = make({.file = net("reviews")}, texts(2));
  const at::Tensor tokens = at::arange(12).view({2, 6}).remainder(24);
  const at::Tensor padded = at::cat({tokens, at::full({2, 3}, -1, c10::kLong)}, 1);
  const at::Tensor expected = outputs(*model, {{"input", tokens}});
  EXPECT_LT((outputs(*model, {{"input", padded}}) - expected).abs().max().item<float>(), 1e-6F);
}

TEST(ExportedModel, EmbedsTheViewsOfSamples) {
  const Task pairs{.kind = Task::Kind::kNumbers, .features = 16, .views = 2};
  const auto model = make({.file = net("siamese")}, pairs);
  const at::Tensor views = at::sin(at::arange(96, c10::kFloat)).view({3, 2, 16});
  const at::Tensor both = outputs(*model, {{"input", views}});
  EXPECT_EQ(both.sizes(), (std::vector<int64_t>{3, 2, 8}));
  Task other = pairs;
  other.views = 3;
  const auto error_with = [](const std::string& name, const Task& task) {
    return error_of([&] { make({.file = net(name)}, task); });
  };
  EXPECT_NE(error_with("siamese", other)
                .find("[any, 2, 8], but samples have 3 views; export a "
                      "module that reads [N, 3, ...]"),
            std::string::npos)
      << error_with("siamese", other);
  other = kDigits;
  other.classes = 0;
  other.views = 2;
  EXPECT_NE(error_with("digits", other).find("but samples have 2 views"), std::string::npos);
}

TEST(ExportedModel, RejectsWhatDoesNotFit) {
  const auto error_with = [](const ExportedConfig& config, const Task& task = kDigits) {
    return error_of([&] { make(config, task); });
  };
  EXPECT_NE(error_with({}).find("model.file: is missing"), std::string::npos);
  EXPECT_NE(error_with({.file = "/nowhere/net.pt2"}).find("/nowhere/net.pt2"), std::string::npos);
  const std::string unknown = error_with({.file = net("random")});
  EXPECT_NE(unknown.find("was exported for training alone, and 2 operators"), std::string::npos)
      << unknown;
  EXPECT_NE(unknown.find("make_exported_nets.py:"), std::string::npos) << unknown;
  Task other = kDigits;
  other.classes = 100;
  EXPECT_NE(error_with({.file = net("digits")}, other).find("the data need 100 outputs"),
            std::string::npos);
  other = kDigits;
  other.channels = 3;
  EXPECT_NE(error_with({.file = net("digits")}, other).find("images of [3, 12, 12]"),
            std::string::npos);
  EXPECT_NE(error_with({.file = net("digits")}, texts(10)).find("the data are tokens"),
            std::string::npos);
  EXPECT_NE(error_with({.file = net("digits"), .inputs = {"a", "b"}}).find("names 2 fields"),
            std::string::npos);
  EXPECT_NE(
      error_with({.file = net("digits"), .inputs = {"pixels=input"}}).find("no input 'pixels'"),
      std::string::npos);
  EXPECT_NE(error_with({.file = net("digits"), .output = "logits"}).find("has 1 outputs: output"),
            std::string::npos);

  const auto model = make({.file = net("digits"), .inputs = {"picture"}});
  const std::string field = error_of([&] { outputs(*model, {{"input", images(2)}}); });
  EXPECT_NE(field.find("takes the field 'picture', but a batch has input"), std::string::npos)
      << field;
}

TEST_F(ExportedModelFiles, RunsKeepTheirDefinition) {
  const fs::path file = folder_ / "net.pt2";
  fs::copy_file(net("digits"), file);
  const ExportedConfig config{.file = file.string()};
  const auto model = make(config);
  model->save_definition(folder_.string());
  InitialWeights weights;
  const std::string run = folder_.string();
  weights.run = run;
  const auto rebuilt = [&] {
    auto again = make(config, kDigits, weights);
    const auto copy = [](const NamedTensors& from, const NamedTensors& to) {
      ASSERT_EQ(from.size(), to.size());
      const at::NoGradGuard no_grad;
      for (size_t i = 0; i < from.size(); ++i) {
        EXPECT_EQ(to[i].name, from[i].name);
        to[i].tensor.copy_(from[i].tensor);
      }
    };
    copy(model->parameters(), again->parameters());
    copy(model->buffers(), again->buffers());
    return again;
  };
  const at::Tensor expected = outputs(*model, {{"input", images(3)}});
  const auto same = rebuilt();
  EXPECT_TRUE(at::equal(outputs(*same, {{"input", images(3)}}), expected));
  EXPECT_TRUE(same->notes().empty());

  fs::copy_file(net("contiguous"), file, fs::copy_options::overwrite_existing);
  const auto old = rebuilt();
  EXPECT_TRUE(at::equal(outputs(*old, {{"input", images(3)}}), expected));
  ASSERT_EQ(old->notes().size(), 1U);
  EXPECT_NE(old->notes().front().find("has changed since the run began"), std::string::npos);

  fs::remove(file);
  EXPECT_TRUE(rebuilt()->notes().empty());
  const std::string error =
      error_of([&] { make({.file = (folder_ / "model.pt2").string()}, kDigits); });
  EXPECT_NE(error.find("has no weights"), std::string::npos) << error;
}

TEST_F(ExportedModelFiles, ReplacesWeights) {
  const std::string file = (folder_ / "weights.safetensors").string();
  const auto model = make({.file = net("digits")});
  const at::Tensor weight = at::full({10, 96}, 0.25);
  write_safetensors(file, {{"head.3.weight", weight}}, {});
  const auto other = make({.file = net("digits"), .weights = file});
  const NamedTensors before = model->parameters(), after = other->parameters();
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const bool is_given = before[i].name == "head.3.weight";
    EXPECT_TRUE(at::equal(after[i].tensor, is_given ? weight : before[i].tensor)) << before[i].name;
  }
  write_safetensors(file, {{"head.3.weight", at::full({10, 9}, 0.25)}}, {});
  const std::string error = error_of([&] { make({.file = net("digits"), .weights = file}); });
  EXPECT_NE(error.find("'head.3.weight' has sizes 10x9"), std::string::npos) << error;
  write_safetensors(file, {{"model.head.3.weight", weight}}, {});
  const std::string foreign = error_of([&] { make({.file = net("digits"), .weights = file}); });
  EXPECT_NE(foreign.find("such as 'model.head.3.weight', and those of the model such as 'blocks.0"),
            std::string::npos)
      << foreign;
}

TEST(ExportedDescription, ComparesTheSampleWithPython) {
  const auto description = exported::describe_archive(net("digits"), /*runs_sample=*/true);
  EXPECT_TRUE(description.problems.empty());
  EXPECT_EQ(description.parameters, 2242);
  ASSERT_EQ(description.inputs.size(), 1U);
  EXPECT_EQ(description.inputs.front().dtype, "float32");
  EXPECT_EQ(description.inputs.front().sizes, "[batch, 1, 12, 12]");
  ASSERT_EQ(description.sample.size(), 2U);
  for (const exported::SampleRun& run : description.sample) {
    EXPECT_TRUE(run.has_reference) << run.mode;
    EXPECT_LT(run.error, 1e-4) << run.mode << " " << run.worst;  // From another processor.
    EXPECT_TRUE(run.without_gradient.empty());
  }
  EXPECT_EQ(description.sample.front().gradient_norms.size(), 11U);
}

TEST_F(ExportedModelFiles, ComparesGradientsOnTheScaleOfTheLargest) {
  ZipArchive zip(net("digits"));
  std::vector<ZipFile> files;
  std::map<std::string, double> norms;
  const std::string name = "head.3.bias";
  for (const ZipEntry& entry : zip.entries()) {
    files.push_back({.name = entry.name, .content = std::string(zip.bytes(entry))});
    if (!entry.name.ends_with("extra/gallop.json")) continue;
    auto reference = nlohmann::json::parse(files.back().content);
    norms = reference["train"]["gradient_norms"].get<std::map<std::string, double>>();
    // As of a gradient that is 0 but for rounding.
    reference["train"]["gradient_norms"][name] = 0.0;
    files.back().content = reference.dump();
  }
  double largest = 0;
  for (const auto& [parameter, norm] : norms) {
    if (parameter != name) largest = std::max(largest, norm);
  }
  const std::string file = (folder_ / "net.pt2").string();
  std::ofstream(file, std::ios::binary) << ZipWriter{}.write(files);
  const auto description = exported::describe_archive(file, /*runs_sample=*/true);
  const exported::SampleRun& run = description.sample.front();
  EXPECT_EQ(run.worst, name);
  const double expected = norms.at(name) / (0.01 * largest);
  EXPECT_NEAR(run.error, expected, 1e-3 * expected);
}

// The archive was exported by torch 2.9 with strict=True.
TEST(ExportedModel, TrainsTiedWeightsThatAreListedTwice) {
  const auto description = exported::describe_archive(net("tied"), /*runs_sample=*/true);
  ASSERT_EQ(description.sample.size(), 2U);
  for (const exported::SampleRun& run : description.sample) {
    EXPECT_TRUE(run.has_reference) << run.mode;
    EXPECT_LT(run.error, 1e-4) << run.mode << " " << run.worst;  // From another processor.
  }

  std::vector<at::Tensor> gradients;
  for (const bool recomputed : {false, true}) {
    const auto model = make({.file = net("tied")});
    ASSERT_EQ(model->blocks(), 2);
    model->recompute({recomputed, recomputed});
    model->set_training(true);
    model->forward(images(3)).square().sum().backward();
    const NamedTensors parameters = model->parameters();
    EXPECT_EQ(parameters.size(), 14U);
    EXPECT_EQ(find_tensor(parameters, "blocks.0.up.weight"), nullptr);
    gradients.push_back(find_tensor(parameters, "blocks.0.down.weight")->grad());
  }
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
}

TEST(ExportedDescription, ListsWhatCannotBeTrained) {
  const auto description = exported::describe_archive(net("random"), /*runs_sample=*/true);
  ASSERT_EQ(description.problems.size(), 1U);
  EXPECT_NE(description.problems.front().find("2 operators"), std::string::npos);
  EXPECT_TRUE(description.sample.empty());
}

}  // namespace
}  // namespace gallop::model
