#include "gallop/data/shard.h"

#include "gallop/data/shard_paths.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

Shard read(const fs::path& path, bool tolerate = false) {
  return read_shard(open_for_reading(path), path, tolerate);
}

Shard read_archive(const std::string& archive, bool tolerate = false) {
  const TestFolder folder;
  return read(folder.add("x.tar", archive), tolerate);
}

std::string error_of(const std::string& archive) {
  return data_error([&] { read_archive(archive); });
}

TEST(Shard, JoinsImagesAndLabelsByTheNameUpToTheFirstDot) {
  const Shard shard = read_archive(make_tar({{"a/1.jpg", "x"},
                                             {"a/1.cls", "3"},
                                             {"a/2.cls", " 14 \n"},
                                             {"a/2.json", "{}"},
                                             {"a/2.PNG", "yy"},
                                             {"a/2.seg.png", "mask"},
                                             {"readme", "x"},
                                             {".hidden.jpg", "x"}}));
  ASSERT_EQ(shard.images.size(), 2u);
  EXPECT_EQ(shard.images[0].name, "a/1.jpg");
  EXPECT_EQ(shard.images[0].label, 3);
  EXPECT_EQ(shard.images[1].name, "a/2.PNG");
  EXPECT_EQ(shard.images[1].label, 14);
  EXPECT_EQ(shard.images[1].size, 2);
  EXPECT_EQ(shard.ignored, 4);
}

TEST(Shard, ListsEveryImageWhereThereAreNoLabels) {
  const Shard shard = read_archive(make_tar(
      {{"cat/1.small.jpg", "x"}, {"cat/2.jpg", "x"}, {"cat/2.png", "x"}, {"cat/n.txt", ""}}));
  ASSERT_EQ(shard.images.size(), 3u);
  EXPECT_EQ(shard.images[0].name, "cat/1.small.jpg");
  EXPECT_EQ(shard.images[0].label, -1);
  EXPECT_EQ(shard.ignored, 1);
}

TEST(Shard, RefusesSamplesThatMakeNoSense) {
  EXPECT_TRUE(contains(error_of(make_tar({{"1.cls", "1"}, {"1.webp", "x"}})),
                       "x.tar: 1: has a .cls, but neither .jpg, .jpeg nor .png"));
  EXPECT_TRUE(contains(error_of(make_tar({{"1.cls", "1"}, {"1.jpg", "x"}, {"1.png", "x"}})),
                       "1: has 2 images and one .cls"));
  EXPECT_TRUE(contains(error_of(make_tar({{"1.cls", "1"}, {"1.cls", "1"}})), "this label twice"));
  for (const std::string label : {"", "cat", "-1", "1.5", "1 2", "99999999", "1048576",
                                  "000000000000000000000000000000000001"}) {
    EXPECT_TRUE(contains(error_of(make_tar({{"1.jpg", "x"}, {"1.cls", label}})),
                         "x.tar: 1.cls: a label is expected to be one number"))
        << label;
  }
}

TEST(Shard, KeepsWhatLiesBeforeToleratedDamage) {
  const std::string archive =
      make_tar({{"1.jpg", "x"}, {"1.cls", "3"}, {"2.jpg", "x"}, {"2.cls", "4"}});
  const std::string cut = archive.substr(0, 3 * 1024);
  EXPECT_TRUE(contains(error_of(cut), "truncated after member '2.jpg'"));
  const Shard shard = read_archive(cut, true);
  ASSERT_EQ(shard.images.size(), 1u);
  EXPECT_EQ(shard.images[0].label, 3);
  EXPECT_TRUE(contains(shard.damage, "truncated after member '2.jpg'"));
}

TEST(ShardCache, GivesTheSameAndNoticesChanges) {
  const TestFolder folder;
  const ShardCache cache{.folder = folder.path() / "cache", .min_bytes = 0};
  const auto read_cached = [&](const fs::path& path) {
    return read_shard_cached(open_for_reading(path), path, false, cache);
  };
  const fs::path path = folder.add("x.tar", make_tar({{"1.jpg", "x"}, {"1.cls", "3"}}));
  EXPECT_EQ(read_cached(path).images[0].label, 3);
  ASSERT_EQ(std::distance(fs::directory_iterator(cache.folder), {}), 1);
  const fs::path entry = fs::directory_iterator(cache.folder)->path();

  // A marked entry shows that it is used.
  const fs::file_time_type time = fs::last_write_time(path);
  std::string archive = make_tar({{"1.jpg", "x"}, {"1.cls", "7"}});
  FileWriter(path).write(archive);
  fs::last_write_time(path, time);
  EXPECT_EQ(read_cached(path).images[0].label, 3);
  fs::last_write_time(path, time + std::chrono::seconds(1));
  EXPECT_EQ(read_cached(path).images[0].label, 7);

  const std::string good = read_file(entry);
  for (size_t at = 0; at < good.size(); at += 9) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_file_atomically(entry, damaged);
    EXPECT_EQ(read_cached(path).images[0].label, 7);
    EXPECT_EQ(read_file(entry), good) << "made again";
  }
  for (const size_t bytes : {size_t{0}, size_t{5}, good.size() - 1}) {
    write_file_atomically(entry, good.substr(0, bytes));
    EXPECT_EQ(read_cached(path).images[0].label, 7);
  }
}

TEST(ShardCache, WorksWhereNothingCanBeWritten) {
  const TestFolder folder;
  const fs::path path = folder.add("x.tar", make_tar({{"1.jpg", "x"}, {"1.cls", "3"}}));
  const ShardCache cache{.folder = path / "no folder", .min_bytes = 0};
  EXPECT_EQ(read_shard_cached(open_for_reading(path), path, false, cache).images.size(), 1u);
}

TEST(ShardPaths, SpellsBracesOut) {
  EXPECT_EQ(expand_braces("a.tar"), std::vector<std::string>{"a.tar"});
  EXPECT_EQ(expand_braces("s-{08..11}.tar"),
            (std::vector<std::string>{"s-08.tar", "s-09.tar", "s-10.tar", "s-11.tar"}));
  EXPECT_EQ(expand_braces("{a,b}-{1..2}"), (std::vector<std::string>{"a-1", "a-2", "b-1", "b-2"}));
  for (const std::string wrong : {"a{", "a}", "}a{", "{1..x}", "{2..1}", "{..}", "{0..999999999}",
                                  "{0..99999}{0..99999}", "{1..2"}) {
    EXPECT_TRUE(contains(data_error([&] { expand_braces(wrong); }), "data.path: " + wrong))
        << wrong;
  }
}

}  // namespace
}  // namespace gallop::data
