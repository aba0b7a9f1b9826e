# What `cmake --install` (./do install [PREFIX]) puts where: the program, its manual pages, the schema of its events, completions for
# shells, the systemd units with the program's place in them, and the examples.
include(GNUInstallDirs)

install(TARGETS ccixfer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

foreach(section 1 5 7 8)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# The units name /usr/bin/ccixfer; the prefix is known when they are installed, not before.
file(GLOB units CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/conf/systemd/*)
install(CODE "
  foreach(unit ${units})
    file(READ \"\${unit}\" text)
    string(REPLACE \"/usr/bin/ccixfer\" \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/ccixfer\" text \"\${text}\")
    get_filename_component(name \"\${unit}\" NAME)
    set(place \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/\${name}\")
    message(STATUS \"Installing: \$ENV{DESTDIR}\${place}\")
    file(WRITE \"\$ENV{DESTDIR}\${place}\" \"\${text}\")
  endforeach()
")

install(FILES ${CMAKE_SOURCE_DIR}/app/report/events.schema.json DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/ccixfer)

# The program makes them of its own table of options. Each shell finds its own where its packages put theirs.
install(CODE "
  foreach(one bash:bash-completion/completions/ccixfer zsh:zsh/site-functions/_ccixfer fish:fish/vendor_completions.d/ccixfer.fish)
    string(REPLACE \":\" \";\" one \"\${one}\")
    list(GET one 0 shell)
    list(GET one 1 name)
    execute_process(COMMAND \"$<TARGET_FILE:ccixfer>\" completion \${shell} OUTPUT_VARIABLE script COMMAND_ERROR_IS_FATAL ANY)
    set(place \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}/\${name}\")
    message(STATUS \"Installing: \$ENV{DESTDIR}\${place}\")
    file(WRITE \"\$ENV{DESTDIR}\${place}\" \"\${script}\")
  endforeach()
")

install(DIRECTORY ${CMAKE_SOURCE_DIR}/conf/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/ccixfer/examples PATTERN systemd EXCLUDE PATTERN debian EXCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${CMAKE_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/ccixfer)
