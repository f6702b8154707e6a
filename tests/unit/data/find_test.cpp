#include "gallop/data/find.h"

#include "gallop/config/component.h"
#include "gallop/data/data_config.h"
#include "gallop/data/data_module.h"
#include "gallop/data/dataset.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"
#include "unit/variable.h"

namespace gallop::data {
namespace {

Wanted wanted(const std::string& command = "") {
  return {.name = "shapes", .command = command, .missing = [](const fs::path& folder) {
            return fs::exists(folder / "data.bin") ? "" : "has no data.bin";
          }};
}

TEST(FindDataSet, LooksAtThePathThenInTheUsualPlaces) {
  const TestFolder own, cache, given;
  const Variable data("GALLOP_DATA", own.name());
  const Variable cached("XDG_CACHE_HOME", cache.name());
  cache.add("gallop/datasets/shapes/data.bin", "x");
  EXPECT_EQ(find_data_set(wanted(), ""), cache.path() / "gallop/datasets/shapes");
  own.add("shapes/other.bin", "x");
  EXPECT_EQ(find_data_set(wanted(), ""), cache.path() / "gallop/datasets/shapes");
  own.add("shapes/data.bin", "x");
  EXPECT_EQ(find_data_set(wanted(), ""), own.path() / "shapes");
  EXPECT_TRUE(contains(data_error([&] { find_data_set(wanted(), given.name()); }),
                       "are not in " + given.name() + " (has no data.bin); set data.path"));
  given.add("data.bin", "x");
  EXPECT_EQ(find_data_set(wanted(), given.name()), given.path());
}

TEST(FindDataSet, ListsEveryPlaceAndTheCommand) {
  const TestFolder own, cache;
  const Variable data("GALLOP_DATA", own.name());
  const Variable cached("XDG_CACHE_HOME", cache.name());
  make_folders(own.path() / "shapes");
  const std::string message = data_error([&] { find_data_set(wanted("get --to FOLDER"), ""); });
  EXPECT_EQ(message,
            "the shapes data are not in " + own.name() + "/shapes (has no data.bin), " +
                "/usr/share/datasets/shapes (does not exist) or " + cache.name() +
                "/gallop/datasets/shapes (does not exist); set data.path to where they are, " +
                "or get them with: get --to " + cache.name() + "/gallop/datasets/shapes");
}

TEST(FindUserData, LooksForRelativePathsInTheUsualPlaces) {
  const TestFolder own, home;
  const Variable data("GALLOP_DATA", own.name());
  const Variable home_folder("HOME", home.name());
  own.add("some/text.txt", "x");
  home.add("text.txt", "x");
  EXPECT_EQ(find_user_data("text", "some/text.txt"), own.path() / "some/text.txt");
  EXPECT_EQ(find_user_data("text", "~/text.txt"), home.path() / "text.txt");
  EXPECT_TRUE(contains(data_error([] { find_user_data("text", "none.txt"); }),
                       "none of these exists: none.txt, " + own.name() + "/none.txt, "));
  EXPECT_TRUE(
      contains(data_error([] { find_user_data("text", ""); }), "the reader 'text' needs it"));
}

TEST(AbsoluteDataPath, LeadsToTheSameDataFromEverywhere) {
  const TestFolder here, own;
  const Variable data("GALLOP_DATA", own.name());
  here.add("a/b.txt", "x");
  here.add("s-01.tar", "x");
  own.add("other/c.txt", "x");
  own.add("shards/t-7.tar", "x");
  const fs::path before = fs::current_path();
  fs::current_path(here.path());
  // The folder may be reached through links.
  const std::string folder = fs::current_path().string();
  EXPECT_EQ(absolute_data_path("a"), folder + "/a");
  EXPECT_EQ(absolute_data_path("././a/b.txt"), folder + "/a/b.txt");
  EXPECT_EQ(absolute_data_path("a/../a/b.txt"), folder + "/a/../a/b.txt") << "a may be a link";
  EXPECT_EQ(absolute_data_path("a/"), folder + "/a/");
  EXPECT_EQ(absolute_data_path("."), folder + "/.");
  EXPECT_EQ(absolute_data_path("s-{01..02}.tar"), folder + "/s-{01..02}.tar");
  EXPECT_EQ(absolute_data_path("other/c.txt"), own.name() + "/other/c.txt");
  EXPECT_EQ(absolute_data_path("shards/{t,u}-7.tar"), own.name() + "/shards/{t,u}-7.tar");
  for (const std::string unchanged : {"", "~/a", "none", "/a/b", "{1..", "n-{1..2}.tar"}) {
    EXPECT_EQ(absolute_data_path(unchanged), unchanged);
  }
  fs::current_path(before);
}

TEST(DataModules, AreAllRegisteredAndOpened) {
  const DataModuleRegistry registry = built_in_data_modules();
  const AugmentationRegistry augmentations = built_in_augmentations();
  const BatchTransformRegistry transforms = built_in_batch_transforms();
  EXPECT_EQ(registry.names(),
            (std::vector<std::string>{"fashion-mnist", "mnist", "cifar10", "cifar100", "folder",
                                      "tar", "fake-images", "image-table", "segmentation", "table",
                                      "csv", "arrays", "text", "documents", "labeled-text",
                                      "tagged-text", "text-pairs"}));
  const TestFolder folder;
  folder.add("train.txt", "abc");
  const auto open = [&](const std::string& name, const std::string& path) {
    DataConfig config(registry, augmentations, transforms);
    config.module = config::Component(registry, name);
    config.path = path;
    config.context = 2;
    return open_data(config, registry, augmentations, {});
  };
  EXPECT_EQ(open("text", folder.name())->signature.vocabulary.size(), 3u);
  for (const std::string& name : registry.names()) {
    if (name == "fake-images") continue;  // Reads no files.
    EXPECT_TRUE(
        contains(data_error([&] { open(name, folder.name() + "/none"); }), folder.name() + "/none"))
        << name;
  }
}

}  // namespace
}  // namespace gallop::data
