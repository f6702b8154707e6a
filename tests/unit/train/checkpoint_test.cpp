#include "gallop/train/checkpoint.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <system_error>
#include <thread>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/train/checkpoint_writer.h"
#include "gallop/train/manifest.h"
#include "unit/base/error_of.h"
#include "unit/train/limited_allocator.h"

namespace gallop::train {
namespace {

TrainingState state_with(double value) {
  const auto filled = [&](at::IntArrayRef shape) {
    return at::full(shape, value, at::TensorOptions(c10::kFloat));
  };
  TrainingState state;
  state.model = {
      {"weight", filled({3, 4})}, {"bias", filled({3})}, {"steps", at::zeros({}, c10::kLong)}};
  state.optimizer = {{"momentum.weight", filled({3, 4})}};
  state.trainer = {{"epoch", fmt::format("{}", value)}, {"note", "line\n\"quoted\" ä"}};
  return state;
}

class Checkpoints : public testing::Test {
 protected:
  Checkpoints() { fs::remove_all(root_); }
  ~Checkpoints() override { fs::remove_all(root_); }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path root_ = fs::temp_directory_path() / fmt::format("gallop-checkpoints-{}", getpid());
  fs::path folder_ = root_ / "checkpoints";
  CheckpointStore store_{folder_};
};

using Names = std::vector<std::string>;

TEST_F(Checkpoints, RestoreWhatWasSaved) {
  const CheckpointInfo saved = store_.save(state_with(1.5), 12, false);
  EXPECT_EQ(saved.folder, folder_ / "step-00000012");
  EXPECT_EQ(saved.step, 12);
  TrainingState live = state_with(0);
  const at::Tensor weight = live.model[0].tensor;
  store_.load(*store_.newest(), live);
  EXPECT_TRUE(at::equal(weight, state_with(1.5).model[0].tensor)) << "copied into the live tensor";
  EXPECT_TRUE(at::equal(live.optimizer[0].tensor, state_with(1.5).optimizer[0].tensor));
  EXPECT_EQ(live.trainer, state_with(1.5).trainer);
  EXPECT_EQ(names(), (Names{"latest", "step-00000012"}));
  EXPECT_EQ(store_.list().front().bytes, saved.bytes);

  const NamedTensors model = state_with(0).model;
  store_.load_model(saved, model);
  EXPECT_TRUE(at::equal(model[1].tensor, state_with(1.5).model[1].tensor));
}

TEST_F(Checkpoints, AreNoneInAFreshFolder) {
  EXPECT_FALSE(store_.newest());
  EXPECT_FALSE(store_.best());
  EXPECT_TRUE(store_.list().empty());
  EXPECT_THROW(CheckpointStore(folder_, {.keep_last = 0}), UsageError);
}

TEST_F(Checkpoints, KeepTheNewestAndTheBest) {
  store_.save(state_with(1), 10, true);
  for (const int64_t step : {20, 30, 40}) store_.save(state_with(1), step, false);
  EXPECT_EQ(names(), (Names{"best", "latest", "step-00000010", "step-00000030", "step-00000040"}));
  EXPECT_EQ(store_.best()->step, 10);
  EXPECT_EQ(store_.newest()->step, 40);
  store_.save(state_with(1), 50, true);
  EXPECT_EQ(names(), (Names{"best", "latest", "step-00000040", "step-00000050"}));
  EXPECT_EQ(store_.best()->step, 50);
}

void flip_a_bit(const fs::path& file) {
  std::string bytes = read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(file) << bytes;
}

// A damaged checkpoint does not count as one that can be resumed from.
TEST_F(Checkpoints, KeepAsManyIntactOnes) {
  for (const int64_t step : {10, 20}) store_.save(state_with(1), step, false);
  flip_a_bit(folder_ / "step-00000020" / "model.safetensors");
  store_.save(state_with(1), 30, false);
  EXPECT_EQ(names(), (Names{"latest", "step-00000010", "step-00000020", "step-00000030"}));
  flip_a_bit(folder_ / "step-00000030" / "state.safetensors");
  EXPECT_EQ(store_.newest_intact([](const std::string&) {})->step, 10);
  for (const int64_t step : {40, 50}) store_.save(state_with(1), step, false);
  EXPECT_EQ(names(), (Names{"latest", "step-00000040", "step-00000050"}));
}

TEST_F(Checkpoints, KeepTheLastIntactOneWhereTheNextIsWrittenDamaged) {
  CheckpointStore store(folder_, {.keep_last = 1});
  store.save(state_with(1), 10, false);
  const TrainingState state = state_with(2);
  const CheckpointDraft draft = store.draft_of(state, 20);
  store.begin(draft);
  auto files = CheckpointStore::write_slice(draft, state, 0);
  flip_a_bit(draft.folder / "model.safetensors");
  store.publish(draft, std::move(files), state.trainer, false);
  EXPECT_EQ(names(), (Names{"latest", "step-00000010", "step-00000020"}));
  store.save(state_with(3), 30, false);
  EXPECT_EQ(names(), (Names{"latest", "step-00000030"}));
}

TEST_F(Checkpoints, KeepSnapshots) {
  EXPECT_TRUE(store_.snapshots().empty());
  for (const int64_t step : {10, 20, 30, 40, 50}) {
    const CheckpointInfo saved = store_.save(state_with(1), step, false);
    for (int twice = 0; twice < 2 && step % 20 == 0; ++twice) store_.keep(saved, Kept::kSnapshot);
  }
  EXPECT_EQ(names(),
            (Names{"latest", "snapshots", "step-00000020", "step-00000040", "step-00000050"}));
  const auto kept = store_.snapshots();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].step, 20);
  EXPECT_EQ(kept[1].step, 40);
  // The list names neighboring folders, never paths, and deleted ones are not listed.
  std::ofstream(folder_ / "snapshots") << "../step-00000020\nstep-00000010\n\nstep-00000020\n";
  ASSERT_EQ(store_.snapshots().size(), 1U);
  EXPECT_EQ(store_.snapshots().front().step, 20);
  fs::remove(folder_ / "step-00000020" / "model.safetensors");
  EXPECT_THROW(store_.snapshots(), DataError);
}

TEST_F(Checkpoints, StayForRunsThatBeginAlike) {
  for (const int64_t step : {10, 20, 30, 40}) {
    const CheckpointInfo saved = store_.save(state_with(1.5), step, step == 10);
    if (step == 20) store_.keep(saved, Kept::kPrefix);
  }
  EXPECT_TRUE(store_.snapshots().empty());
  CheckpointStore other(root_ / "other");
  other.take_over(*store_.best(), true);
  other.take_over(*store_.of_step(20), false);
  EXPECT_EQ(other.newest()->step, 20);
  EXPECT_EQ(other.best()->step, 10);
  TrainingState live = state_with(0);
  other.load(*other.newest(), live);
  EXPECT_EQ(live.trainer, state_with(1.5).trainer) << "nothing is lost";
  flip_a_bit(store_.of_step(30)->folder / "state.safetensors");
  EXPECT_THROW(other.take_over(*store_.of_step(30), false), DataError);
  EXPECT_EQ(other.newest()->step, 20);
}

TEST_F(Checkpoints, MayGoBackAndReachAStepAgain) {
  for (const int64_t step : {10, 20, 30}) store_.save(state_with(1), step, false);
  store_.save(state_with(2), 20, false);
  EXPECT_EQ(store_.newest()->folder, folder_ / "step-00000020.2");
  TrainingState live = state_with(0);
  store_.load(*store_.newest(), live);
  EXPECT_EQ(live.trainer.at("epoch"), "2");
  EXPECT_EQ(names(), (Names{"latest", "step-00000020.2", "step-00000030"}));
  store_.save(state_with(3), 30, false);
  EXPECT_EQ(store_.list()[0].folder, folder_ / "step-00000030.2");
  EXPECT_EQ(store_.list()[1].step, 20);
}

TEST_F(Checkpoints, TellEveryDifferenceAndCopyNothing) {
  store_.save(state_with(1.5), 1, false);
  TrainingState live = state_with(0);
  live.model[0].tensor = at::zeros({4, 3});
  live.optimizer[0].name = "exp_avg.weight";
  const std::string error = error_of([&] { store_.load(*store_.newest(), live); });
  for (const char* part : {"step-00000001 does not fit the recipe",
                           "\n  weight: is Float [3, 4], expected Float [4, 3]",
                           "\n  exp_avg.weight: missing", "\n  momentum.weight: not expected"}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  EXPECT_EQ(live.model[1].tensor.sum().item<float>(), 0);
  EXPECT_EQ(live.trainer, state_with(0).trainer);
}

TEST_F(Checkpoints, RefuseAFlippedBitAnywhere) {
  const CheckpointInfo saved = store_.save(state_with(1.5), 1, false);
  for (const char* name :
       {"model.safetensors", "state.safetensors", "trainer.json", "manifest.json"}) {
    const fs::path path = saved.folder / name;
    const std::string good = read_file(path);
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
      std::ofstream(path, std::ios::binary) << bad;
      TrainingState live = state_with(0);
      const std::string error = error_of([&] { store_.load(saved, live); });
      ASSERT_TRUE(error.starts_with(path.string() + ": "))
          << name << " byte " << at << ": " << error;
      ASSERT_EQ(live.model[0].tensor.sum().item<float>(), 0);
    }
    std::ofstream(path, std::ios::binary) << good;
  }
  TrainingState live = state_with(0);
  store_.load(saved, live);
}

TEST_F(Checkpoints, AreIncompleteWithAShortOrMissingFile) {
  store_.save(state_with(1), 1, false);
  const CheckpointInfo second = store_.save(state_with(2), 2, false);
  for (const char* name :
       {"model.safetensors", "state.safetensors", "trainer.json", "manifest.json"}) {
    const fs::path path = second.folder / name;
    const std::string good = read_file(path);
    for (const size_t length : {size_t{0}, size_t{7}, good.size() - 1}) {
      fs::resize_file(path, length);
      ASSERT_EQ(store_.list().size(), 1u);
      EXPECT_TRUE(error_of([&] { store_.newest(); }).starts_with(path.string() + ": "));
      TrainingState live = state_with(0);
      EXPECT_TRUE(error_of([&] { store_.load(second, live); }).starts_with(path.string() + ": "));
      store_.load(store_.list().front(), live);
      EXPECT_EQ(live.trainer.at("epoch"), "1") << "the older one is at hand";
      std::ofstream(path, std::ios::binary) << good;
    }
    fs::rename(path, second.folder / "away");
    EXPECT_TRUE(error_of([&] { store_.newest(); }).starts_with(path.string() + ": "));
    fs::rename(second.folder / "away", path);
  }
  EXPECT_EQ(store_.newest()->step, 2);
}

TEST_F(Checkpoints, IgnoreAndRemoveWhatDiedHalfway) {
  store_.save(state_with(1), 1, false);
  fs::create_directories(folder_ / ".tmp-step-00000002");
  std::ofstream(folder_ / ".tmp-step-00000002" / "model.safetensors") << "half";
  std::ofstream(folder_ / "latest.tmp-123") << "step-0";
  fs::create_directories(folder_ / "step-00000009");
  EXPECT_EQ(store_.list().size(), 1u);
  store_.save(state_with(2), 2, false);
  EXPECT_EQ(names(), (Names{"latest", "step-00000001", "step-00000002", "step-00000009"}));
}

TEST_F(Checkpoints, FindTheirWayWithoutPointers) {
  store_.save(state_with(1), 1, false);
  store_.save(state_with(2), 2, true);
  for (const char* content : {"", "step-00000003\n", "../checkpoints/step-00000001", "\xff\xff"}) {
    std::ofstream(folder_ / "latest") << content;
    EXPECT_EQ(store_.newest()->step, 2) << content;
    std::ofstream(folder_ / "best") << content;
    EXPECT_FALSE(store_.best()) << content;
  }
}

TEST_F(Checkpoints, RefuseTheManifestOfANewerFormat) {
  const CheckpointInfo saved = store_.save(state_with(1), 1, false);
  std::string text = read_file(saved.folder / "manifest.json");
  text.replace(text.find("\"format\": 1"), 11, "\"format\": 2");
  std::ofstream(saved.folder / "manifest.json") << text;
  EXPECT_NE(error_of([&] { store_.newest(); }).find("newer Gallop"), std::string::npos);
}

TEST_F(Checkpoints, RefuseAManifestThatNamesOtherFiles) {
  const CheckpointInfo saved = store_.save(state_with(1), 1, false);
  Manifest manifest = read_manifest(saved.folder / "manifest.json");
  manifest.files["../../secret"] = manifest.files["trainer.json"];
  std::ofstream(saved.folder / "manifest.json") << render_manifest(manifest);
  EXPECT_NE(error_of([&] { store_.newest(); }).find("lists other files"), std::string::npos);
}

TEST_F(Checkpoints, GoOnFromTheNewestThatIsNotDamaged) {
  store_.save(state_with(1), 1, false);
  store_.save(state_with(2), 2, false);
  std::vector<std::string> reported;
  const auto find = [&] {
    return store_.newest_intact([&](const auto& line) { reported.push_back(line); });
  };
  EXPECT_EQ(find()->step, 2);
  EXPECT_TRUE(reported.empty());

  const fs::path newest = folder_ / "step-00000002";
  std::fstream(newest / "state.safetensors", std::ios::in | std::ios::out)
      .seekp(-1, std::ios::end)
      .put('x');
  EXPECT_EQ(find()->step, 1);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0],
            (newest / "state.safetensors").string() + ": damaged: its checksum is wrong");

  // The checkpoint that "latest" names is incomplete.
  fs::resize_file(newest / "model.safetensors", 10);
  EXPECT_EQ(find()->step, 1);
  EXPECT_NE(reported.back().find("model.safetensors: missing or damaged"), std::string::npos);

  std::ofstream(folder_ / "step-00000001" / "trainer.json") << "{}";
  EXPECT_NE(error_of(find).find("model.safetensors: missing or damaged"), std::string::npos);
  EXPECT_FALSE(CheckpointStore(root_ / "none").newest_intact({}));
}

TEST_F(Checkpoints, AreNotVerifiedTwice) {
  store_.save(state_with(1), 1, false);
  CheckpointInfo found = *store_.newest_intact([](const std::string&) {});
  EXPECT_TRUE(found.is_verified);
  flip_a_bit(found.folder / "model.safetensors");
  TrainingState into = state_with(2);
  store_.load(found, into);
  found.is_verified = false;
  EXPECT_NE(error_of([&] { store_.load(found, into); }).find("its checksum is wrong"),
            std::string::npos);
}

TEST_F(Checkpoints, KeepWhatAProcessHasForItself) {
  TrainingState state = state_with(1);
  state.own = {{rank_state_name(1, "error"), at::full({3}, 7.0)}};
  CheckpointDraft draft = store_.draft_of(state, 1);
  draft.slices = 2;
  store_.begin(draft);
  WrittenFiles files;
  for (int rank = 0; rank < draft.slices; ++rank) {
    TrainingState of_rank{.model = slice_of(state.model, rank, 2),
                          .optimizer = slice_of(state.optimizer, rank, 2)};
    if (rank == 1) of_rank.optimizer.push_back(state.own.front());
    files.merge(CheckpointStore::write_slice(draft, of_rank, rank));
  }
  const CheckpointInfo saved = store_.publish(draft, files, state.trainer, false);
  TrainingState into = state_with(2);
  store_.load(saved, into);
  ASSERT_EQ(into.own.size(), 1U);
  EXPECT_EQ(into.own[0].name, "own.1.error");
  EXPECT_TRUE(at::equal(into.own[0].tensor, at::full({3}, 7.0)));
}

// Saves like processes that have one slice each.
CheckpointInfo save_in_slices(CheckpointStore& store, const TrainingState& state, int64_t step,
                              int slices) {
  CheckpointDraft draft = store.draft_of(state, step);
  draft.slices = slices;
  store.begin(draft);
  CheckpointWriter first(store, {.rank = 0});
  first.start(draft, state, true);
  for (int rank = 1; rank < slices; ++rank) {
    CheckpointWriter other(store, {.rank = rank});
    other.start(draft, state, true);
    EXPECT_FALSE(other.wait()) << "the first process publishes";
  }
  return first.wait().value();
}

TEST_F(Checkpoints, AreTheSameInAnyNumberOfSlices) {
  TrainingState state = state_with(1.5);
  for (int i = 0; i < 7; ++i) {
    state.model.push_back({fmt::format("more.{}", i), at::full({i + 1, 5}, i)});
  }
  for (const int slices : {1, 2, 3, 8}) {
    const CheckpointInfo saved = save_in_slices(store_, state, slices, slices);
    TrainingState live = state;
    for (NamedTensors* list : {&live.model, &live.optimizer}) {
      for (auto& [name, tensor] : *list) tensor = at::zeros_like(tensor);
    }
    store_.load(*store_.newest(), live);
    for (size_t i = 0; i < state.model.size(); ++i) {
      EXPECT_TRUE(at::equal(live.model[i].tensor, state.model[i].tensor)) << live.model[i].name;
    }
    EXPECT_TRUE(at::equal(live.optimizer[0].tensor, state.optimizer[0].tensor));
    EXPECT_EQ(live.trainer, state.trainer);
    EXPECT_EQ(store_.list().front().bytes, saved.bytes);
  }
}

TEST_F(Checkpoints, NeedAllOfTheirSlices) {
  const CheckpointInfo saved = save_in_slices(store_, state_with(1), 1, 2);
  EXPECT_TRUE(fs::exists(saved.folder / "model-00002-of-00002.safetensors"));
  EXPECT_FALSE(fs::exists(saved.folder / "slice-00001-of-00002.json"));
  fs::remove(saved.folder / "model-00002-of-00002.safetensors");
  EXPECT_NE(error_of([&] { store_.newest(); }).find("model-00002-of-00002.safetensors: missing"),
            std::string::npos);
}

TEST_F(Checkpoints, AreNotPublishedWithoutTheSlicesOfOthers) {
  store_.save(state_with(1), 1, false);
  CheckpointDraft draft = store_.draft_of(state_with(2), 2);
  draft.slices = 2;
  store_.begin(draft);
  CheckpointWriter first(store_, {.rank = 0, .seconds = 0.05});
  first.start(draft, state_with(2), false);
  EXPECT_NE(error_of([&] { first.wait(); }).find("another process has not written its part"),
            std::string::npos);
  EXPECT_EQ(store_.newest()->step, 1);
  EXPECT_EQ(names(), (Names{"latest", "step-00000001"}));
}

TEST_F(Checkpoints, AreOfTheMomentWhenTheyWereStarted) {
  const TrainingState state = state_with(1);
  CheckpointWriter writer(store_, {});
  for (int step = 1; step <= 3; ++step) {
    const CheckpointDraft draft = store_.draft_of(state, step);
    store_.begin(draft);
    state.model[0].tensor.fill_(step);
    writer.start(draft, state, false);
    state.model[0].tensor.fill_(-1);
    EXPECT_EQ(writer.wait()->step, step);
    EXPECT_FALSE(writer.poll()) << "reported once";
    TrainingState live = state_with(0);
    store_.load(*store_.newest(), live);
    EXPECT_EQ(live.model[0].tensor[0][0].item<float>(), static_cast<float>(step));
  }
}

TEST_F(Checkpoints, TellOnceWhyTheyCouldNotBeWritten) {
  store_.save(state_with(1), 1, false);
  const CheckpointDraft draft = store_.draft_of(state_with(2), 2);
  CheckpointWriter writer(store_, {});
  writer.start(draft, state_with(2), false);  // Its folder does not exist.
  EXPECT_NE(error_of([&] { writer.wait(); }).find("older checkpoints are untouched"),
            std::string::npos);
  EXPECT_FALSE(writer.wait());
  EXPECT_EQ(store_.newest()->step, 1);
}

// The address space may be too full for the stack of a thread.
TEST_F(Checkpoints, AreWrittenByTheCallerWhereNoThreadCanStart) {
  pthread_attr_t attributes, original;
  ASSERT_EQ(pthread_getattr_default_np(&original), 0);
  ASSERT_EQ(pthread_getattr_default_np(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t{1} << 50), 0);
  ASSERT_EQ(pthread_setattr_default_np(&attributes), 0);
  EXPECT_THROW(std::thread([] {}), std::system_error);
  const CheckpointDraft draft = store_.draft_of(state_with(1), 1);
  store_.begin(draft);
  CheckpointWriter writer(store_, {});
  writer.start(draft, state_with(1), false);
  EXPECT_EQ(store_.newest()->step, 1);
  EXPECT_EQ(writer.poll()->step, 1);
  EXPECT_FALSE(writer.wait()) << "reported once";
  ASSERT_EQ(pthread_setattr_default_np(&original), 0);
  pthread_attr_destroy(&attributes);
  pthread_attr_destroy(&original);
}

// A concurrent step has taken all memory for a while.
TEST_F(Checkpoints, AreWrittenAgainWhereThereWasNoMemory) {
  LimitedAllocator& memory = LimitedAllocator::get();
  TrainingState state = state_with(1);
  // In this memory format the tensor is copied before it is written.
  state.model[0].tensor =
      at::full({2, 3, 4, 4}, 7).contiguous(at::MemoryFormat::ChannelsLast).to(at::kFloat);
  CheckpointWriter writer(store_, {});
  for (const int64_t step : {1, 2}) {
    const CheckpointDraft draft = store_.draft_of(state, step);
    store_.begin(draft);
    if (step == 2) memory.limit(0);
    writer.start(draft, state, false);
    while (step == 2 && memory.failures() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    memory.lift();
    EXPECT_EQ(writer.wait()->step, step);
  }
  EXPECT_EQ(store_.newest_intact({})->step, 2);
}

TEST_F(Checkpoints, CannotBeSavedUnderAFile) {
  fs::create_directories(root_);
  std::ofstream(root_ / "file") << "x";
  for (const fs::path& folder : {root_ / "file" / "checkpoints", fs::path("/proc/gallop")}) {
    CheckpointStore store(folder);
    const std::string error = error_of([&] { store.save(state_with(1), 1, false); });
    EXPECT_TRUE(error.starts_with(folder.string() + ": ")) << error;
    EXPECT_NE(error.find("; a checkpoint needs 6"), std::string::npos) << error;
  }
}

// Limits file sizes to `bytes` while it is alive: writing fails halfway, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit old_;
};

TEST_F(Checkpoints, LeaveNothingBehindWhereWritingFails) {
  store_.save(state_with(1), 1, false);
  TrainingState large = state_with(2);
  large.model[0].tensor = at::zeros({100000});
  large.optimizer[0].tensor = at::zeros({200000});
  for (const rlim_t bytes : {10, 1000, 100000, 500000}) {
    const FileSizeLimit limit(bytes);
    const std::string error = error_of([&] { store_.save(large, 2, true); });
    EXPECT_NE(error.find(".safetensors: cannot write: File too large"), std::string::npos) << error;
    EXPECT_NE(error.find("a checkpoint needs 1.2 MiB"), std::string::npos) << error;
    EXPECT_EQ(names(), (Names{"latest", "step-00000001"}));
  }
  TrainingState live = state_with(0);
  store_.load(*store_.newest(), live);
  EXPECT_EQ(live.trainer.at("epoch"), "1");
}

// A disk of 1 MiB, if the process may mount one.
class SmallDisk : public Checkpoints {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=1m") != 0) {
      GTEST_SKIP() << "this process may not mount a file system";
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }
  bool mounted_ = false;
};

TEST_F(SmallDisk, FullKeepsTheOldCheckpoint) {
  store_.save(state_with(1), 1, false);
  TrainingState large = state_with(2);
  large.model[0].tensor = at::zeros({300000});
  const std::string error = error_of([&] { store_.save(large, 2, false); });
  EXPECT_TRUE(error.starts_with(folder_.string() + ": only ")) << error;
  EXPECT_NE(error.find("a checkpoint needs 1.2 MiB"), std::string::npos) << error;
  EXPECT_EQ(names(), (Names{"latest", "step-00000001"}));
}

TEST_F(SmallDisk, ReadOnlyKeepsTheOldCheckpoint) {
  store_.save(state_with(1), 1, false);
  ASSERT_EQ(mount(nullptr, folder_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  const std::string error = error_of([&] { store_.save(state_with(2), 2, false); });
  EXPECT_NE(error.find("Read-only file system"), std::string::npos) << error;
  EXPECT_EQ(store_.newest()->step, 1);
}

TEST_F(Checkpoints, SurviveKillsAtAnyMoment) {
  TrainingState state = state_with(0);
  store_.save(state, 1, false);
  Philox random(1, Purpose::kSample, 0, 0);
  for (int round = 0; round < 30; ++round) {
    const int64_t before = store_.newest()->step;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (int64_t step = before + 1;; ++step) {
          for (auto& [name, tensor] : state.model) tensor.fill_(step);
          state.trainer["epoch"] = fmt::format("{}", step);
          store_.save(state, step, step % 3 == 0);
        }
      } catch (...) {
        _exit(1);
      }
    }
    usleep(static_cast<useconds_t>(random.below(60000)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "saving failed";
    TrainingState live = state_with(-1);
    const auto newest = store_.newest();
    ASSERT_TRUE(newest);
    store_.load(*newest, live);
    EXPECT_GE(newest->step, before);
    EXPECT_EQ(live.trainer.at("epoch"), fmt::format("{}", newest->step == 1 ? 0 : newest->step));
    for (const CheckpointInfo& entry : store_.list()) store_.load(entry, live);
  }
  store_.save(state, 1000000, false);
  for (const std::string& name : names()) EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name;
}

}  // namespace
}  // namespace gallop::train
