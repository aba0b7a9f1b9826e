# One library target per room. ccixfer_room(core/base DEPS fmt::fmt ROOMS core/wire) makes target `core_base`
# from every .cc in the folder and links the rooms it may see. tests/layers.txt is the DAG that a test checks.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED)

add_library(ccixfer_flags INTERFACE)
target_compile_options(ccixfer_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror -fno-omit-frame-pointer
  $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # so that ccache sees through a precompiled header
target_include_directories(ccixfer_flags INTERFACE ${CMAKE_SOURCE_DIR})
# Third-party code never sees our warnings, and assertions stay on in every build type.
target_compile_definitions(ccixfer_flags INTERFACE BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_DISABLE_CO_AWAIT
  SPDLOG_FMT_EXTERNAL SPDLOG_COMPILED_LIB)
if(CCIXFER_SANITIZE)
  target_compile_options(ccixfer_flags INTERFACE -fsanitize=${CCIXFER_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(ccixfer_flags INTERFACE -fsanitize=${CCIXFER_SANITIZE})
  if(CCIXFER_SANITIZE MATCHES "address.*undefined")
    # An access through a null pointer ends in ASan's report anyway; UBSan's check of every pointer is a quarter of the compile time.
    target_compile_options(ccixfer_flags INTERFACE -fno-sanitize=null)
  endif()
endif()
target_link_libraries(ccixfer_flags INTERFACE Threads::Threads)

# The standard headers that most files have, parsed once a build type. Every file still includes what it uses: clang-tidy and the fuzz
# targets read it without (CMAKE_DISABLE_PRECOMPILE_HEADERS). Nothing with a macro that ours or Catch2's could meet.
set(ccixfer_headers <algorithm> <array> <chrono> <cstdint> <cstring> <deque> <functional> <map> <memory> <optional> <set> <span>
  <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
file(WRITE ${CMAKE_BINARY_DIR}/headers.cc "")
# ccixfer_headers_library(TARGET FLAGS [HEADERS...]): those that REUSE_FROM it have the same flags.
function(ccixfer_headers_library target flags)
  add_library(${target} OBJECT ${CMAKE_BINARY_DIR}/headers.cc)
  target_link_libraries(${target} PRIVATE ${flags} fmt::fmt)
  target_precompile_headers(${target} PRIVATE ${ccixfer_headers} ${ARGN})
endfunction()
ccixfer_headers_library(ccixfer_room_headers ccixfer_flags)

# Hot rooms are made of small objects in files of their own. A release is optimised across these files, so that a call between them
# costs nothing: an empty turn takes a tenth less time than without.
set_target_properties(ccixfer_room_headers PROPERTIES INTERPROCEDURAL_OPTIMIZATION_RELEASE ON)
target_link_options(ccixfer_flags INTERFACE $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-flto=auto>)

# NOT_HOT rooms: nothing in them takes time when it runs, but much of them is made of the templates of CLI11, toml11 and spdlog.
# With sanitizers they compile at -O0 in half the time.
add_library(ccixfer_flags_not_hot INTERFACE)
target_link_libraries(ccixfer_flags_not_hot INTERFACE ccixfer_flags)
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT CCIXFER_FUZZ)
  add_library(ccixfer_not_hot INTERFACE)
  target_compile_options(ccixfer_not_hot INTERFACE -O0)
  target_link_libraries(ccixfer_flags_not_hot INTERFACE ccixfer_not_hot)
endif()
ccixfer_headers_library(ccixfer_room_headers_not_hot ccixfer_flags_not_hot)

# WITHOUT, ONLY: names of files; an optional part of the program is a file that is taken or left out.
function(ccixfer_room room)
  cmake_parse_arguments(ARG "NOT_HOT" "" "ROOMS;DEPS;WITHOUT;ONLY" ${ARGN})
  string(REPLACE "/" "_" target ${room})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${room}/*.cc)
  list(TRANSFORM ARG_WITHOUT PREPEND ${CMAKE_SOURCE_DIR}/${room}/)
  list(REMOVE_ITEM sources ${ARG_WITHOUT} "")
  if(ARG_ONLY)
    set(sources ${ARG_ONLY})
    list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/${room}/)
  endif()
  set(links ccixfer_flags ${ARG_DEPS})
  foreach(other ${ARG_ROOMS})
    string(REPLACE "/" "_" other_target ${other})
    list(APPEND links ${other_target})
  endforeach()
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC ${links})
    if(ARG_NOT_HOT)
      target_link_libraries(${target} PRIVATE ccixfer_flags_not_hot)
      target_precompile_headers(${target} REUSE_FROM ccixfer_room_headers_not_hot)
    else()
      target_precompile_headers(${target} REUSE_FROM ccixfer_room_headers)
      set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION_RELEASE ON)
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${links})
  endif()
endfunction()
